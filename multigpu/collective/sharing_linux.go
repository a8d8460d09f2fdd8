package collective

func (c *shm) sharesMemory() bool { return true }
