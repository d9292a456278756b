/* A library with functions whose names begin as the driver's do, one of them the very name of a driver function. */
int cuInit(unsigned flags) {
    return 70 + (int)flags;
}

#define OWN(name)                                                                                                      \
    int name(void) {                                                                                                   \
        return 78;                                                                                                     \
    }

OWN(cudnnCreate)
OWN(cublasCreate_v2)
OWN(cufftPlan1d)
OWN(cusparseCreate)
OWN(cuNumericInit)
OWN(cuInit_v9)
