// Package machine is this machine: what it can do at most ([Limits], measured once and kept in the user's
// cache directory), how much memory may still be taken ([ReadMemory]), which GPUs workers may use ([GPUSlots]), and what it does ([Watch]: host and
// GPUs, once an interval). Limits of control groups, a container's or a job's, count where they bind.
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
