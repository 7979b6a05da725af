package mpa

// Want returns how many octets of the Reply may be read next without reading one
// beyond it: those missing of the key, of the header, or of the Private Data. It is
// 0 when the Reply is whole. A reader that asks the socket for no more leaves what
// follows the startup where the first FPDU, or the consumer after a rejection,
// will read it. [Q13]
func (i *Initiator) Want() int { return i.in.missing() }

// Want returns how many octets of the Request may be read next without reading one
// beyond it, as with [Initiator.Want].
func (r *Responder) Want() int { return r.in.missing() }

func (in *intake) missing() int { return in.want - in.have }
