package mpa

// Want returns how many octets may be read next without reading one beyond the
// frame that is awaited: those missing of the key, of the header, or of the Private
// Data. It is 0 when none is awaited, as after an error. A reader that asks the socket for no more
// leaves what follows the startup where the first FPDU, or the consumer after a
// rejection, will read it. [Q13]
func (i *Initiator) Want() int { return i.in.wanted(i.done) }

// Want returns how many octets may be read next, as with [Initiator.Want]: none
// between a Request and its answer.
func (r *Responder) Want() int { return r.in.wanted(r.done) }

func (in *intake) wanted(done bool) int {
	if done || !in.pending() {
		return 0
	}
	return in.missing()
}
