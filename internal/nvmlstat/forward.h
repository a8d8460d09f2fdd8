// nvml_forward makes NVML's functions in this program call those of a library. It is called once, before any
// call of them.
void nvml_forward(const char *library);
