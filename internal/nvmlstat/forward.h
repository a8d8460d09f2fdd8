// nvml_forward makes NVML's functions in this program those of a library. It is called once, before any of
// them.
void nvml_forward(const char *library);
