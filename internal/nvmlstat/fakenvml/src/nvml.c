// A library with the interface of NVML and with simulated GPUs. The prototypes are those of NVML's own
// header, so the library has NVML's binary interface. (go-nvml's copy of the header has a device's handle in
// a struct, which is passed in the same way as the handle.)
//
// The file that FAKE_NVML names controls the library. It is read at each call, so that a test can change it
// while the library is in use. Each line is one of the following; GPU is a number, or * for all GPUs:
//
//	gpus N                 number of GPUs (read by nvmlInit_v2); 1 without this line
//	mig GPU N              the GPU is divided into N instances
//	proc GPU PID BYTES     a process computes on the GPU; BYTES -1 is "not available"
//	throttle GPU BITS
//	fail FUNCTION GPU CODE the function returns CODE
//	hang FUNCTION GPU      the function does not return until the line is removed
//	crash FUNCTION GPU     the function ends the process, as a fault of the library does
//
// Values depend on the GPU's number and on the number of calls for its utilisation. With -DOLD the library
// has only the calls of an old driver.
#include <nvml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 16, PARTS = 7 };
struct nvmlDevice_st { int gpu, part; unsigned asked; };
static struct nvmlDevice_st devices[MOST], parts[MOST][PARTS];
static int count;

static FILE *script(void) {
	const char *file = getenv("FAKE_NVML");
	return file ? fopen(file, "r") : NULL;
}

// Finds a line "WHAT GPU NUMBER" or "WHAT FUNCTION GPU [NUMBER]" for this GPU and returns whether there is one.
static int says(const char *what, const char *function, int gpu, long long *number) {
	FILE *f = script();
	char line[256], w[64], fn[128], g[16];
	int found = 0;
	if (!f) return 0;
	while (!found && fgets(line, sizeof line, f)) {
		long long n = 0;
		if (function) {
			if (sscanf(line, "%63s %127s %15s %lld", w, fn, g, &n) < 3 || strcmp(fn, function)) continue;
		} else if (sscanf(line, "%63s %15s %lld", w, g, &n) < 3) continue;
		if (strcmp(w, what) || (strcmp(g, "*") && atoi(g) != gpu)) continue;
		if (number) *number = n;
		found = 1;
	}
	fclose(f);
	return found;
}

static nvmlReturn_t enter(const char *function, int gpu) {
	long long code = 0;
	while (says("hang", function, gpu, NULL)) usleep(5000);
	if (says("crash", function, gpu, NULL)) *(volatile int *)8 = 1;
	if (says("fail", function, gpu, &code)) return (nvmlReturn_t)code;
	return NVML_SUCCESS;
}

#define ENTER(gpu) do { nvmlReturn_t r = enter(__func__, gpu); if (r != NVML_SUCCESS) return r; } while (0)

nvmlReturn_t nvmlInit_v2(void) {
	char line[256];
	FILE *f = script();
	count = 1;
	for (; f && fgets(line, sizeof line, f);) sscanf(line, "gpus %d", &count);
	if (f) fclose(f);
	for (int i = 0; i < MOST; i++) {
		devices[i] = (struct nvmlDevice_st){i, -1, 0};
		for (int p = 0; p < PARTS; p++) parts[i][p] = (struct nvmlDevice_st){i, p, 0};
	}
	return enter("nvmlInit_v2", 0);
}
nvmlReturn_t nvmlInit(void) { return nvmlInit_v2(); }
nvmlReturn_t nvmlShutdown(void) { return NVML_SUCCESS; }
const char *nvmlErrorString(nvmlReturn_t r) { return r == NVML_ERROR_UNKNOWN ? "Unknown Error" : r == NVML_ERROR_TIMEOUT ? "Timeout" : "Another Error"; }
nvmlReturn_t nvmlSystemGetDriverVersion(char *v, unsigned n) { ENTER(0); snprintf(v, n, "570.12.34"); return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) { ENTER(0); *n = (unsigned)count; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *d) { ENTER((int)i); if ((int)i >= count) return NVML_ERROR_INVALID_ARGUMENT; d->handle = &devices[i]; return NVML_SUCCESS; }

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *s, unsigned n) {
	ENTER(d.handle->gpu);
	if (d.handle->part < 0) snprintf(s, n, "NVIDIA Fake %d", d.handle->gpu); else snprintf(s, n, "NVIDIA Fake %d MIG 1g.10gb", d.handle->gpu);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *s, unsigned n) {
	ENTER(d.handle->gpu);
	if (d.handle->part < 0) snprintf(s, n, "GPU-%d", d.handle->gpu); else snprintf(s, n, "MIG-%d-%d", d.handle->gpu, d.handle->part);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *p) {
	ENTER(d.handle->gpu);
	memset(p, 0, sizeof *p);
	snprintf(p->busId, sizeof p->busId, "00000000:%02X:00.0", 16 + d.handle->gpu);
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *u) {
	ENTER(d.handle->gpu);
	if (says("mig", NULL, d.handle->gpu, NULL)) return NVML_ERROR_NOT_SUPPORTED;
	unsigned n = ++d.handle->asked;
	u->gpu = (unsigned)(40 * d.handle->gpu + 10 * n) % 101;
	u->memory = u->gpu / 2;
	return NVML_SUCCESS;
}
static const unsigned long long GB = 1000000000ull;
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *m) {
	ENTER(d.handle->gpu);
	m->total = d.handle->part < 0 ? 80 * GB : 10 * GB;
	m->used = d.handle->part < 0 ? (unsigned long long)(d.handle->gpu + 1) * 10 * GB + GB : GB;
	m->free = m->total - m->used;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, nvmlTemperatureSensors_t s, unsigned *t) { ENTER(d.handle->gpu); if (s != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT; *t = 50 + 5 * (unsigned)d.handle->gpu + d.handle->asked % 10; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *mw) { ENTER(d.handle->gpu); *mw = 200000 + 1000 * (unsigned)d.handle->gpu + 500; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned *mw) { ENTER(d.handle->gpu); *mw = 700000; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t c, unsigned *mhz) { ENTER(d.handle->gpu); *mhz = c == NVML_CLOCK_SM ? 1410 : 2619; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t c, unsigned *mhz) { ENTER(d.handle->gpu); *mhz = c == NVML_CLOCK_SM ? 1980 : 2619; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *bits) {
	ENTER(d.handle->gpu);
	long long n = 1; // idle
	says("throttle", NULL, d.handle->gpu, &n);
	*bits = (unsigned long long)n;
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t d, nvmlPcieUtilCounter_t c, unsigned *kb) { ENTER(d.handle->gpu); *kb = c == NVML_PCIE_UTIL_RX_BYTES ? 3000 : 1000; return NVML_SUCCESS; }

// Returns the processes of the script, in the layout of either version.
static int processes(int gpu, unsigned room, void (*put)(unsigned, unsigned, unsigned long long, void *), void *to) {
	FILE *f = script();
	char line[256];
	unsigned n = 0;
	for (; f && fgets(line, sizeof line, f);) {
		int g;
		unsigned pid;
		long long bytes;
		if (sscanf(line, "proc %d %u %lld", &g, &pid, &bytes) != 3 || g != gpu) continue;
		if (n < room) put(n, pid, (unsigned long long)bytes, to);
		n++;
	}
	if (f) fclose(f);
	return (int)n;
}
static void put1(unsigned i, unsigned pid, unsigned long long bytes, void *to) { ((nvmlProcessInfo_v1_t *)to)[i] = (nvmlProcessInfo_v1_t){pid, bytes}; }
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t d, unsigned *n, nvmlProcessInfo_v1_t *to) {
	ENTER(d.handle->gpu);
	unsigned room = *n;
	*n = (unsigned)processes(d.handle->gpu, room, put1, to);
	return *n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#ifndef OLD
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *m) {
	ENTER(d.handle->gpu);
	nvmlMemory_t v1;
	nvmlDeviceGetMemoryInfo(d, &v1);
	m->total = v1.total;
	m->reserved = GB / 2;
	m->used = v1.used - m->reserved;
	m->free = v1.free;
	return NVML_SUCCESS;
}
static void put2(unsigned i, unsigned pid, unsigned long long bytes, void *to) { ((nvmlProcessInfo_t *)to)[i] = (nvmlProcessInfo_t){pid, bytes, 0xFFFFFFFF, 0xFFFFFFFF}; }
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *n, nvmlProcessInfo_t *to) {
	ENTER(d.handle->gpu);
	unsigned room = *n;
	*n = (unsigned)processes(d.handle->gpu, room, put2, to);
	return *n > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
// Counters advance as if one second passed between two readings.
nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, nvmlFieldValue_t *v) {
	ENTER(d.handle->gpu);
	for (int i = 0; i < n; i++) {
		unsigned long long rate = 0;
		v[i].nvmlReturn = NVML_SUCCESS;
		v[i].timestamp = 1000000ll * d.handle->asked;
		v[i].valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
		switch (v[i].fieldId) {
		case NVML_FI_DEV_PCIE_COUNT_RX_BYTES: rate = 5 * GB; break;
		case NVML_FI_DEV_PCIE_COUNT_TX_BYTES: rate = 2 * GB; break;
		case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX: rate = 40000000; break; // KiB
		case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX: rate = 30000000; break;
		default: v[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
		}
		if (rate == 40000000 && v[i].scopeId != 0xFFFFFFFF) v[i].nvmlReturn = NVML_ERROR_INVALID_ARGUMENT;
		if (rate > 1000000000 && d.handle->gpu % 2) v[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED; // GPUs with odd numbers have no counters for the bus
		v[i].value.ullVal = rate * d.handle->asked;
	}
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *now, unsigned *next) { ENTER(d.handle->gpu); *now = *next = says("mig", NULL, d.handle->gpu, NULL) ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned *n) { ENTER(d.handle->gpu); *n = PARTS; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned i, nvmlDevice_t *m) {
	ENTER(d.handle->gpu);
	long long n = 0;
	says("mig", NULL, d.handle->gpu, &n);
	if (i == 1 || (long long)i > n) return NVML_ERROR_NOT_FOUND; // the second place is empty
	m->handle = &parts[d.handle->gpu][i];
	return NVML_SUCCESS;
}
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned *id) { ENTER(d.handle->gpu); *id = 7 + (unsigned)d.handle->part; return NVML_SUCCESS; }
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned *id) { ENTER(d.handle->gpu); *id = 0; return NVML_SUCCESS; }
#endif
