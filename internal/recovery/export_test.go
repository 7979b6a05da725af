package recovery

// Synced reports whether it is known where the next FPDU in order begins.
func (r *Receiver) Synced() bool { return r.synced }
