package iwarp

// PostRecvs appends receives in order. It stops at the first that cannot be posted, and
// returns how many were; the error is about wrs[n].
func (qp *QP) PostRecvs(wrs []RecvWR) (n int, err error) { return postAll(wrs, qp.PostRecv) }

// PostRecvs adds receives in order. It stops at the first that cannot be posted, and
// returns how many were; the error is about wrs[n].
func (s *SRQ) PostRecvs(wrs []RecvWR) (n int, err error) { return postAll(wrs, s.PostRecv) }

// postAll posts one by one. Others may post between, as each receive stands for itself.
func postAll(wrs []RecvWR, post func(*RecvWR) error) (n int, err error) {
	for n < len(wrs) {
		if err := post(&wrs[n]); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
