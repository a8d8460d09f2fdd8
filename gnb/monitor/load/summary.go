package load

// Stat summarises a figure over the N samples in which it was known.
type Stat struct {
	N    int     `json:"n"`
	Min  float64 `json:"min"`
	Mean float64 `json:"mean"`
	Max  float64 `json:"max"`
}

// HostSummary summarises the host. Shares are 0 to 1, memory is in bytes, rates are in bytes per
// second.
type HostSummary struct {
	Cores       float64 `json:"cores"`
	MemoryTotal int64   `json:"memory_total"`
	CPU         Stat    `json:"cpu"`
	Memory      Stat    `json:"memory"`
	DiskRead    Stat    `json:"disk_read"`
	DiskWrite   Stat    `json:"disk_write"`
	NetReceive  Stat    `json:"net_receive"`
	NetSend     Stat    `json:"net_send"`
}

// GPUSummary summarises one GPU.
type GPUSummary struct {
	Index       int    `json:"index"`
	Name        string `json:"name"`
	UUID        string `json:"uuid"`
	MemoryTotal Value  `json:"memory_total"`
	Utilization Stat   `json:"utilization"`
	Memory      Stat   `json:"memory"`
	RunMemory   Stat   `json:"run_memory"` // memory of the chosen run, or of all runs
	Temperature Stat   `json:"temperature_c"`
	Power       Stat   `json:"power_w"`
	// EnergyJ is the energy in joules: the power integrated over the time in which it was known.
	EnergyJ float64 `json:"energy_j"`
	// Throttled is the share of samples in which clocks were lowered, by reason.
	Throttled map[string]float64 `json:"throttled,omitempty"`
	// Error is the error of the last sample.
	Error string `json:"error,omitempty"`
}
