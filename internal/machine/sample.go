package machine

import (
	"math"

	"github.com/graphnb/graphnb/gnb/monitor/load"
)

// The figures of a machine at one moment, which users name too.
type (
	Sample   = load.Sample
	Host     = load.Host
	Totals   = load.Totals
	GPU      = load.GPU
	Instance = load.Instance
	Process  = load.Process
	Value    = load.Value
)

// Unknown returns the value of a figure that the machine does not report.
func Unknown() Value { return Value(math.NaN()) }

// Blank returns a GPU with unknown figures.
func Blank(index int) GPU {
	x := Unknown()
	return GPU{
		Index: index, Utilization: x, MemoryBusy: x, MemoryUsed: x, MemoryTotal: x, TemperatureC: x, PowerW: x, PowerLimitW: x,
		ClockMHz: x, ClockMaxMHz: x, MemoryClockMHz: x, PCIeReceive: x, PCIeSend: x, NVLinkReceive: x, NVLinkSend: x,
	}
}
