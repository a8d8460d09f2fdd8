int ncclGetVersion(int *v) { *v = 22903; return 0; }
