package envknob

// For users.
var (
	Data       = knob(Users, "GNB_DATA", "FOLDER", "folder with downloaded files of published datasets; `gnb install --data FOLDER` sets it for cells")
	Home       = knob(Users, "GNB_HOME", "FOLDER", "folder for downloaded and converted datasets; by default `graphnb` in the user's cache directory")
	Runs       = knob(Users, "GNB_RUNS", "FOLDER", "folder for runs; by default `runs` in the current directory")
	Workers    = knob(Users, "GNB_WORKERS", "N", "default number of workers of a run")
	Small      = knob(Users, "GNB_SMALL", "1", "`gnb.Small` returns a small replacement of a dataset, so notebooks run in seconds")
	Headless   = knob(Users, "GNB_HEADLESS", "1", "no interactive user: a terminal gets plain lines, and the kernel does not start gopls; `gnb install --headless` sets it for cells")
	Trace      = knob(Users, "GNB_TRACE", "1", "an error caused by a panic in a worker prints the stack trace")
	CPUProfile = knob(Users, "GNB_CPUPROFILE", "FILE", "each worker writes a CPU profile to FILE.RANK, for `go tool pprof`")
	Helper     = knob(Users, "GNB_HELPER", "FILE", "the program `gnb` that monitors GPUs for cells, instead of the one next to the executable or on PATH")
)

// For GPUs.
var (
	CUDAMemory   = knob(GPUs, "GNB_CUDA_MEMORY", "20GB", "device memory that a worker may use; by default nearly all free memory")
	CUDAPinned   = knob(GPUs, "GNB_CUDA_PINNED", "8GB", "host memory that all workers of a run may pin for data; by default the free memory, less a sixteenth")
	CUDAFeatures = knob(GPUs, "GNB_CUDA_FEATURES", "PLACE", "place of features: `device`, `cached` (the most used rows on the device), `pinned` (in host memory, read by kernels) or `staged` (in host memory, copied batch by batch)")
	CUDAGraph    = knob(GPUs, "GNB_CUDA_GRAPH", "PLACE", "place of the graph: `device`, `pinned` or `staged`")
	CUDAShare    = knob(GPUs, "GNB_CUDA_SHARE", "1", "several workers may share a GPU (NCCL 2.30 or newer; sets its `NCCL_MULTI_RANK_GPU_ENABLE`, unless that is set)")
	CUDADebug    = knob(GPUs, "GNB_CUDA_DEBUG", "1", "wait for every kernel, so that an error names the failed one")
	CUDAExact    = knob(GPUs, "GNB_CUDA_EXACT", "1", "a separate allocation for each buffer, for compute-sanitizer")
	CUDATrace    = knob(GPUs, "GNB_CUDA_TRACE", "FILE", "write to FILE a line for each launch, each wait of the host for the device (with the number of launches since), each read of bytes that the host asked for, and each allocation")
	LibCUDA      = knob(GPUs, "GNB_LIBCUDA", "FILE", "the driver's library to load")
	LibCuBLAS    = knob(GPUs, "GNB_LIBCUBLAS", "FILE", "the cuBLAS to load")
	LibNCCL      = knob(GPUs, "GNB_LIBNCCL", "FILE", "the NCCL to load")
	NVIDIAProc   = knob(GPUs, "GNB_NVIDIA_PROC", "FOLDER", "the driver's `/proc` directory, by default `/proc/driver/nvidia`")
)

// For users of a cluster.
var (
	Launcher   = knob(Clusters, "GNB_LAUNCHER", "NAME", "the launcher whose variables count: `slurm`, `openmpi`, `mpich`, `torchrun`, or `none` to start own workers; by default the innermost one")
	Rendezvous = knob(Clusters, "GNB_RENDEZVOUS", "HOST:PORT", "the address at which rank 0 waits for ranks on other machines, instead of the launcher's")
	Token      = knob(Clusters, "GNB_TOKEN", "TEXT", "a secret of at least 16 characters that every rank proves to know, the same on all machines")
	TokenFile  = knob(Clusters, "GNB_TOKEN_FILE", "FILE", "a file with that secret, which only its owner can read (mode 0600)")
	Insecure   = knob(Clusters, "GNB_INSECURE", "1", "accept ranks on other machines without a secret, as `--insecure` does: anyone who reaches the port can join the run and read its data")
	MPICC      = knob(Clusters, "GNB_MPICC", "FILE", "the compiler wrapper of the MPI library that `scripts/mpi-env.sh` asks for its flags, by default `mpicc`")
)

// Set by GraphNB itself.
var (
	Worker      = knob(Internal, "GNB_WORKER", "JOB", "this process is a worker")
	RunID       = knob(Internal, "GNB_RUN_ID", "ID", "the run of a worker, shown in lists of processes")
	Group       = knob(Internal, "GNB_GROUP", "ID", "the group of processes that end together")
	Kernel      = knob(Internal, "GNB_KERNEL", "NAME", "the name of the kernel that runs the cell")
	KernelDir   = knob(Internal, "GNB_KERNEL_DIR", "FOLDER", "the kernel's temporary directory")
	Venv        = knob(Internal, "GNB_VENV", "FOLDER", "the Python environment of the kernel, which is searched for NVIDIA's libraries")
	CUDAInclude = knob(Internal, "GNB_CUDA_INCLUDE", "FOLDER", "the header that cells with `-tags cuda` are compiled against")
)

// For developers of GraphNB.
var (
	Python         = knob(Developers, "GNB_PYTHON", "FILE", "the Python with NumPy and Jupyter for tests")
	Chromium       = knob(Developers, "GNB_CHROMIUM", "FILE", "the browser for tests")
	BrowserModules = knob(Developers, "GNB_BROWSER_MODULES", "FOLDER", "the Node.js modules that drive the browser; set by the tests")
	Strict         = knob(Developers, "GNB_STRICT", "1", "`make test` fails if a test that could run is skipped; `CI=true` does the same")
	Soak           = knob(Developers, "GNB_SOAK", "1", "fault tests run every case instead of a sample")
	Look           = knob(Developers, "GNB_LOOK", "FOLDER", "folder for the pictures of drawing tests")
	Pictures       = knob(Developers, "GNB_PICTURES", "FOLDER", "folder for the output of `make pictures`")
	LabOut         = knob(Developers, "GNB_LAB_OUT", "FOLDER", "folder for screenshots of tests in JupyterLab")
	GPUCheck       = knob(Developers, "GNB_GPU_CHECK", "1", "tests of the GPU path use the real driver and libraries")
)
