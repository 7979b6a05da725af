package mpa

// Want returns how many octets may be read next without reading one beyond the
// frame that the machine waits for: the octets that are missing of key and header, or of the
// Private Data. It is 0 when the machine waits for none, as after an error. A
// reader that asks the socket for no more than that leaves what follows the startup where
// the first FPDU, or the consumer after a rejection, will find it.
func (i *Initiator) Want() int { return i.in.wanted(i.done) }

// Want returns how many octets may be read next, as with [Initiator.Want]: none
// between a Request and its answer.
func (r *Responder) Want() int { return r.in.wanted(r.done) }

func (in *intake) wanted(done bool) int {
	if done || !in.pending() {
		return 0
	}
	if in.part == partKey && in.hasHeader() {
		return in.missing() + StartupHeaderLen - KeyLen
	}
	return in.missing()
}

// hasHeader reports whether every frame that may come has more than its key: a Start Key has no more.
func (in *intake) hasHeader() bool {
	return in.await != awaitStartKey && (in.await != awaitRequest || !in.served(DialectStartKey))
}
