"""A capture as plain documents of JSON types, and drawings of its graphs."""
