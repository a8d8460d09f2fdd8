package envknob

// For users.
var (
	Data       = &Knob{"GNB_DATA", "FOLDER", "folder with downloaded files of published datasets; `gnb install --data FOLDER` sets it for cells", Users}
	Home       = &Knob{"GNB_HOME", "FOLDER", "folder for downloaded and converted datasets; by default `graphnb` in the user's cache directory", Users}
	Runs       = &Knob{"GNB_RUNS", "FOLDER", "folder for runs; by default `runs` in the current directory", Users}
	Workers    = &Knob{"GNB_WORKERS", "N", "default number of workers of a run", Users}
	Small      = &Knob{"GNB_SMALL", "1", "`gnb.Small` returns a small replacement of a dataset, so notebooks run in seconds", Users}
	Headless   = &Knob{"GNB_HEADLESS", "1", "no interactive user: a terminal gets plain lines, and the kernel does not start gopls; `gnb install --headless` sets it for cells", Users}
	Trace      = &Knob{"GNB_TRACE", "1", "an error caused by a panic in a worker prints the stack trace", Users}
	CPUProfile = &Knob{"GNB_CPUPROFILE", "FILE", "each worker writes a CPU profile to FILE.RANK, for `go tool pprof`", Users}
	InProcess  = &Knob{"GNB_IN_PROCESS", "1", "a run with one worker computes in the program's own process, which debuggers and NVIDIA's profilers can follow; a panic or a stuck step then ends the program", Users}
	Helper     = &Knob{"GNB_HELPER", "FILE", "the program `gnb` that monitors GPUs for cells, instead of the one next to the executable or on PATH", Users}
)

// For GPUs.
var (
	CUDAMemory   = &Knob{"GNB_CUDA_MEMORY", "20GB", "device memory that a worker may use; by default nearly all free memory", GPUs}
	CUDAPinned   = &Knob{"GNB_CUDA_PINNED", "8GB", "host memory that all workers of a run may pin for data; by default the free memory, less a sixteenth", GPUs}
	CUDAFeatures = &Knob{"GNB_CUDA_FEATURES", "PLACE", "place of features: `device`, `cached` (the most used rows on the device), `pinned` (in host memory, read by kernels) or `staged` (in host memory, copied batch by batch)", GPUs}
	CUDAGraph    = &Knob{"GNB_CUDA_GRAPH", "PLACE", "place of the graph: `device`, `pinned` or `staged`", GPUs}
	CUDAShare    = &Knob{"GNB_CUDA_SHARE", "1", "several workers may share a GPU (NCCL 2.30 or newer; sets its `NCCL_MULTI_RANK_GPU_ENABLE`, unless that is set)", GPUs}
	CUDADebug    = &Knob{"GNB_CUDA_DEBUG", "1", "wait for every kernel, so that an error names the failed one", GPUs}
	CUDAExact    = &Knob{"GNB_CUDA_EXACT", "1", "a separate allocation for each buffer, for compute-sanitizer", GPUs}
	CUDATrace    = &Knob{"GNB_CUDA_TRACE", "FILE", "write to FILE a line for each launch, each wait of the host for the device (with the number of launches since), each read of bytes that the host asked for, and each allocation", GPUs}
	LibCUDA      = &Knob{"GNB_LIBCUDA", "FILE", "the driver's library to load", GPUs}
	LibCuBLAS    = &Knob{"GNB_LIBCUBLAS", "FILE", "the cuBLAS to load", GPUs}
	LibNCCL      = &Knob{"GNB_LIBNCCL", "FILE", "the NCCL to load", GPUs}
	NVIDIAProc   = &Knob{"GNB_NVIDIA_PROC", "FOLDER", "the driver's `/proc` directory, by default `/proc/driver/nvidia`", GPUs}
)

// For users of a cluster.
var (
	Launcher   = &Knob{"GNB_LAUNCHER", "NAME", "the launcher whose variables count: `slurm`, `openmpi`, `mpich`, `torchrun`, or `none` to start own workers; by default the innermost one", Clusters}
	Rendezvous = &Knob{"GNB_RENDEZVOUS", "HOST:PORT", "the address at which rank 0 waits for ranks on other machines, instead of the launcher's", Clusters}
	Token      = &Knob{"GNB_TOKEN", "TEXT", "a secret of at least 16 characters that every rank proves to know, the same on all machines", Clusters}
	TokenFile  = &Knob{"GNB_TOKEN_FILE", "FILE", "a file with that secret, which only its owner can read (mode 0600)", Clusters}
	Insecure   = &Knob{"GNB_INSECURE", "1", "accept ranks on other machines without a secret, as `--insecure` does: anyone who reaches the port can join the run and read its data", Clusters}
	SSH        = &Knob{"GNB_SSH", "COMMAND", "the program by which `gnb launch` reaches hosts, with its options, instead of `ssh -T -o BatchMode=yes`", Clusters}
	MPICC      = &Knob{"GNB_MPICC", "FILE", "the compiler wrapper of the MPI library that `scripts/mpi-env.sh` asks for its flags, by default `mpicc`", Clusters}
)

// Set by GraphNB itself.
var (
	Worker      = &Knob{"GNB_WORKER", "JOB", "this process is a worker", Internal}
	RunID       = &Knob{"GNB_RUN_ID", "ID", "the run of a worker, shown in lists of processes", Internal}
	Group       = &Knob{"GNB_GROUP", "ID", "the group of processes that end together", Internal}
	Kernel      = &Knob{"GNB_KERNEL", "NAME", "the name of the kernel that runs the cell", Internal}
	KernelDir   = &Knob{"GNB_KERNEL_DIR", "FOLDER", "the kernel's temporary directory", Internal}
	Venv        = &Knob{"GNB_VENV", "FOLDER", "the Python environment of the kernel, which is searched for NVIDIA's libraries", Internal}
	CUDAInclude = &Knob{"GNB_CUDA_INCLUDE", "FOLDER", "the header that cells with `-tags cuda` are compiled against", Internal}
)

// For developers of GraphNB.
var (
	Python         = &Knob{"GNB_PYTHON", "FILE", "the Python with NumPy and Jupyter for tests", Developers}
	Chromium       = &Knob{"GNB_CHROMIUM", "FILE", "the browser for tests", Developers}
	BrowserModules = &Knob{"GNB_BROWSER_MODULES", "FOLDER", "the Node.js modules that drive the browser; set by the tests", Developers}
	Strict         = &Knob{"GNB_STRICT", "1", "`make test` fails if a test that could run is skipped; `CI=true` does the same", Developers}
	Soak           = &Knob{"GNB_SOAK", "1", "fault tests run every case instead of a sample", Developers}
	Race           = &Knob{"GNB_RACE", "all", "tests that take long run under the race detector too; set by `make soak`", Developers}
	Look           = &Knob{"GNB_LOOK", "FOLDER", "folder for the pictures of drawing tests", Developers}
	Pictures       = &Knob{"GNB_PICTURES", "FOLDER", "folder for the output of `make pictures`", Developers}
	Panel          = &Knob{"GNB_PANEL", "FOLDER", "dataset that `make pictures` shows in a run's panel", Developers}
	LabOut         = &Knob{"GNB_LAB_OUT", "FOLDER", "folder for screenshots of tests in JupyterLab", Developers}
	GPUCheck       = &Knob{"GNB_GPU_CHECK", "1", "tests of the GPU path use the real driver and libraries", Developers}
)

// All returns the variables, by audience, in the order of their declarations.
func All() []*Knob {
	return []*Knob{
		Data, Home, Runs, Workers, Small, Headless, Trace, CPUProfile, InProcess, Helper,
		CUDAMemory, CUDAPinned, CUDAFeatures, CUDAGraph, CUDAShare, CUDADebug, CUDAExact, CUDATrace, LibCUDA, LibCuBLAS, LibNCCL, NVIDIAProc,
		Launcher, Rendezvous, Token, TokenFile, Insecure, SSH, MPICC,
		Worker, RunID, Group, Kernel, KernelDir, Venv, CUDAInclude,
		Python, Chromium, BrowserModules, Strict, Soak, Race, Look, Pictures, Panel, LabOut, GPUCheck,
	}
}
