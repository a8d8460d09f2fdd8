// Package machine describes this machine: its speed limits ([Limits], measured once and stored in
// the user's cache directory), its free memory ([ReadMemory]), the GPUs that workers may use
// ([GPUSlots]), and its current load ([Watch]: host and GPUs, once per interval). It respects the
// limits of control groups, such as a container's or a job's.
//
// # Basics
//
// A [HostReader] reads the host from /proc and /sys. Another process reads the GPUs: the helper,
// which is the command "gnb monitor --helper". NVIDIA's library (NVML) is written in C, so using it
// requires cgo, and a crash in it ends the calling process. [Watch] starts the helper, reads its
// lines, adds the host's figures and reports what is missing and why.
//
// The helper writes a line of JSON per interval ([Hello] first, then [Reading]) and ends when its
// standard input closes, so that it never outlives the process that started it, even if that
// process is killed.
//
// # Caveats
//
// Rates are averages since the previous reading. A figure that the machine does not report is
// [Unknown], which is NaN: test it with Known.
package machine
