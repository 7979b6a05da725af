package transfer

// copied are the names of what was copied of several sources, so that none of them takes the place of what another has
// brought, which --force would allow. It is nil for a single source.
type copied map[string]bool

func newCopied(sources []string) copied {
	if len(sources) < 2 {
		return nil
	}
	return copied{}
}

func (c copied) add(name string) {
	if c != nil {
		c[name] = true
	}
}

// note adds a name if the receiver has what goes by it now, and returns the outcome.
func (c copied) note(name string, o *Outcome) *Outcome {
	if o.Good() {
		c.add(name)
	}
	return o
}
