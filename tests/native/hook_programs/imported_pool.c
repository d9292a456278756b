/* Memory of another process's pool. */
#include "program.h"

int main(void) {
    CUdeviceptr address = 0;
    CUmemPoolPtrExportData data;
    memset(&data, 0, sizeof data);
    primary_context();
    SAY("import %d", cuMemPoolImportPointer(&address, NULL, &data));
    SAY("free %d", cuMemFree(address));
    return 0;
}
