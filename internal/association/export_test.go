package association

// Gone is closed when the association has ended.
func (a *Association) Gone() <-chan struct{} { return a.gone }
