// Package machine describes this machine: its speed limits ([Limits], measured once and stored in
// the user's cache directory), its free memory ([ReadMemory]), the GPUs that workers may use
// ([GPUSlots]), and its current load ([Watch]: host and GPUs, once per interval). It respects the
// limits of control groups, such as a container's or a job's.
//
// # Basics
//
// A [HostReader] reads the host from /proc and /sys. GPUs are read by another process, the helper, which
// is the command "gnb monitor --helper": NVIDIA's library (NVML) is C, a program that uses it takes cgo, and
// a crash in it ends the process that called it. [Watch] starts the helper, reads its lines, puts the host
// beside them and says what is missing and why.
//
// The helper writes a line of JSON an interval ([Hello] first, then [Reading]) and ends when its standard
// input does, so that it never outlives who started it, however that ended.
//
// # Caveats
//
// Rates are over the time since the reading before. A figure that the machine does not give is [Unknown],
// which is NaN: compare by Known.
package machine
