package monitor

import "github.com/graphnb/graphnb/gnb/monitor/load"

// The figures of a machine, and their summaries.
type (
	// Sample is one moment of a machine.
	Sample = load.Sample
	// Host is the machine without its GPUs.
	Host = load.Host
	// Totals are the host's counters.
	Totals = load.Totals
	// GPU is one GPU.
	GPU = load.GPU
	// Instance is a part of a GPU divided by MIG.
	Instance = load.Instance
	// Process is a process that uses a GPU.
	Process = load.Process
	// Value is a figure, or NaN if the machine does not provide it.
	Value = load.Value
	// Stat summarises a figure.
	Stat = load.Stat
	// HostSummary summarises the host.
	HostSummary = load.HostSummary
	// GPUSummary summarises one GPU.
	GPUSummary = load.GPUSummary
)
