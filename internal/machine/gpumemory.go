package machine

import (
	"context"
	"os"
	"time"
)

// askGPUs is the time in which NVIDIA's driver is asked for the memory of GPUs.
const askGPUs = 5 * time.Second

// FreeGPUMemory returns the bytes that are free on the GPUs of a number of workers, of which the first has GPU first: those
// of the GPU with the least. It is 0 if that is unknown: without GPUs, without a helper to ask the driver, and on instances of a GPU. Where
// CUDA_VISIBLE_DEVICES names GPUs, whose order may be another one, it is the most that any GPU has.
func FreeGPUMemory(ctx context.Context, first, workers int) int64 {
	slots, err := GPUSlots()
	if err != nil {
		return 0
	}
	ctx, stop := context.WithTimeout(ctx, askGPUs)
	defer stop()
	var gpus []GPU
	_ = Watch(ctx, WatchOptions{Interval: MinInterval}, func(s Sample) {
		if len(s.GPUs) > 0 || s.Note != Starting {
			gpus = s.GPUs
			stop()
		}
	})
	return leastFree(gpus, slots, first, workers, os.Getenv("CUDA_VISIBLE_DEVICES") != "")
}

// leastFree is FreeGPUMemory for a reading; reordered says that slots may be in another order.
func leastFree(gpus []GPU, slots []GPUSlot, first, workers int, reordered bool) (bytes int64) {
	free := func(i int) int64 {
		if i >= len(gpus) || !gpus[i].MemoryUsed.Known() || !gpus[i].MemoryTotal.Known() || len(gpus[i].Instances) > 0 {
			return 0
		}
		return int64(gpus[i].MemoryTotal - gpus[i].MemoryUsed)
	}
	if reordered {
		for i := range gpus {
			bytes = max(bytes, free(i))
		}
		return bytes
	}
	for rank := range workers {
		slot := slots[(first+rank)%len(slots)]
		n := free(slot.Device)
		if n == 0 {
			return 0
		}
		if rank == 0 || n < bytes {
			bytes = n
		}
	}
	return bytes
}
