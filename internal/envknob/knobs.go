package envknob

// For users.
var (
	Data       = knob(Users, "GNB_DATA", "FOLDER", "files of published datasets, which are then not downloaded; `gnb install --data FOLDER` sets it for cells")
	Home       = knob(Users, "GNB_HOME", "FOLDER", "where downloaded and converted datasets go; by default `graphnb` in the user's cache directory")
	Runs       = knob(Users, "GNB_RUNS", "FOLDER", "where runs go; by default `runs` in the current directory")
	Workers    = knob(Users, "GNB_WORKERS", "N", "workers of runs that do not say how many")
	Small      = knob(Users, "GNB_SMALL", "1", "`gnb.Small` takes the small stand-in of a dataset: notebooks run in seconds")
	Headless   = knob(Users, "GNB_HEADLESS", "1", "nobody is watching: a terminal gets plain lines, and the kernel does not start gopls; `gnb install --headless` sets it for cells")
	Trace      = knob(Users, "GNB_TRACE", "1", "errors that come from a panic in a worker print its stack")
	CPUProfile = knob(Users, "GNB_CPUPROFILE", "FILE", "each worker writes a CPU profile to FILE.RANK, for `go tool pprof`")
	Helper     = knob(Users, "GNB_HELPER", "FILE", "the program `gnb` that cells ask about GPUs and the machine, instead of the one beside the executable or on PATH")
)

// For GPUs.
var (
	CUDAMemory   = knob(GPUs, "GNB_CUDA_MEMORY", "20GB", "device memory that a worker may take; by default nearly all that is free")
	CUDAPinned   = knob(GPUs, "GNB_CUDA_PINNED", "8GB", "host memory that all workers of a run may pin for data; by default what is free, less a sixteenth")
	CUDAFeatures = knob(GPUs, "GNB_CUDA_FEATURES", "PLACE", "where features lie: `device`, `cached` (those used most on the device), `pinned` (in host memory, read by kernels) or `staged` (in host memory, copied batch by batch)")
	CUDAGraph    = knob(GPUs, "GNB_CUDA_GRAPH", "PLACE", "where the graph lies: `device`, `pinned` or `staged`")
	CUDAShare    = knob(GPUs, "GNB_CUDA_SHARE", "1", "more workers than GPUs: they share (NCCL 2.30 or newer; sets its `NCCL_MULTI_RANK_GPU_ENABLE`, unless that is set)")
	CUDADebug    = knob(GPUs, "GNB_CUDA_DEBUG", "1", "wait for every kernel, and name the one that failed")
	CUDAExact    = knob(GPUs, "GNB_CUDA_EXACT", "1", "an allocation of its own for each buffer, for compute-sanitizer")
	CUDATrace    = knob(GPUs, "GNB_CUDA_TRACE", "FILE", "write to FILE a line for each launch, each wait of the host for the device (with how many launches it had been asked for since), each read of bytes that the host asked for, and each allocation")
	LibCUDA      = knob(GPUs, "GNB_LIBCUDA", "FILE", "the driver's library to load")
	LibCuBLAS    = knob(GPUs, "GNB_LIBCUBLAS", "FILE", "the cuBLAS to load")
	LibNCCL      = knob(GPUs, "GNB_LIBNCCL", "FILE", "the NCCL to load")
	NVIDIAProc   = knob(GPUs, "GNB_NVIDIA_PROC", "FOLDER", "where the driver's `/proc` directory is, if not in `/proc/driver/nvidia`")
)

// Set by GraphNB itself.
var (
	Worker      = knob(Internal, "GNB_WORKER", "JOB", "this process is a worker")
	RunID       = knob(Internal, "GNB_RUN_ID", "ID", "the run of a worker, for people who look at processes")
	Group       = knob(Internal, "GNB_GROUP", "ID", "the processes that belong together and end together")
	Kernel      = knob(Internal, "GNB_KERNEL", "NAME", "the name of the kernel that a cell runs under")
	KernelDir   = knob(Internal, "GNB_KERNEL_DIR", "FOLDER", "the kernel's temporary directory")
	Venv        = knob(Internal, "GNB_VENV", "FOLDER", "the Python environment that the kernel is installed in, in which NVIDIA's libraries are looked for")
	CUDAInclude = knob(Internal, "GNB_CUDA_INCLUDE", "FOLDER", "the header that cells with `-tags cuda` are compiled against")
)

// For those who work on GraphNB.
var (
	Python         = knob(Developers, "GNB_PYTHON", "FILE", "the Python with NumPy and Jupyter that tests run")
	Chromium       = knob(Developers, "GNB_CHROMIUM", "FILE", "the browser that tests drive")
	BrowserModules = knob(Developers, "GNB_BROWSER_MODULES", "FOLDER", "the Node.js modules that drive the browser; set by the tests")
	Strict         = knob(Developers, "GNB_STRICT", "1", "`make test` fails where a test skips that could have run; so it does where `CI=true`")
	Soak           = knob(Developers, "GNB_SOAK", "1", "tests of faults take every case, not a sample")
	Look           = knob(Developers, "GNB_LOOK", "FOLDER", "where tests of drawings leave them, for eyes to look at")
	Pictures       = knob(Developers, "GNB_PICTURES", "FOLDER", "where `make pictures` puts the pictures of the docs")
	LabOut         = knob(Developers, "GNB_LAB_OUT", "FOLDER", "where tests in JupyterLab leave their screenshots")
	GPUCheck       = knob(Developers, "GNB_GPU_CHECK", "1", "tests of the GPU path use the real driver and libraries")
)
