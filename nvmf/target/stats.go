package target

// Stats are what a Target has now, and has done so far.
type Stats struct {
	Controllers int    // associations with hosts
	Queues      int    // connections that are up
	Commands    uint64 // that were answered, whatever the status
	Faults      uint64 // commands that a Backend failed: see Config.Logger
}

// Stats may be called by any goroutine.
func (t *Target) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{
		Controllers: len(t.controllers), Queues: len(t.connected()),
		Commands: t.commands.Load(), Faults: t.faults.Load(),
	}
}
