//go:build linux && (amd64 || arm64)

package verbs

import "syscall"

// What a QP has to do with the rdma_cm_id that connects it. A QP has one at a time, and after RESET another: that of a
// connection which is over is not to touch what the QP has then.

// link ties the QP to the rdma_cm_id that connects it. One that has a connection already is EINVAL.
func (q *QP) link(id *ID) syscall.Errno {
	q.linking.Lock()
	defer q.linking.Unlock()
	if q.id != nil && q.id != id || q.orphan {
		return syscall.EINVAL
	}
	q.id = id
	if q.state.Load() == StateReset {
		q.state.Store(StateInit)
	}
	return fine
}

// unlink frees the QP from an ID that has gone. Its connection goes on.
func (q *QP) unlink(id *ID) {
	q.of(id, func() { q.orphan = true })
}

// of does something, under q.linking, if the QP's connection is still that of an ID.
func (q *QP) of(id *ID, do func()) {
	q.linking.Lock()
	defer q.linking.Unlock()
	if q.id == id {
		do()
	}
}

// leaveID has the QP's ID, if there is one, do nothing more with the QP. A connection that is on its way comes to
// nothing. What is posted until RESET is that of a QP that has had a connection.
func (q *QP) leaveID() {
	q.linking.Lock()
	id := q.id
	q.id, q.orphan = nil, q.orphan || id != nil
	q.linking.Unlock()
	if id != nil {
		id.abandon()
		id.attempt.Wait()
	}
}

// connection returns the ID whose connection the QP has, as long as the program has it.
func (q *QP) connection() *ID {
	q.linking.Lock()
	defer q.linking.Unlock()
	if q.orphan {
		return nil
	}
	return q.id
}

// Linked reports whether a QP is one that an rdma_cm_id connects.
func (d *Device) Linked(h Handle) bool {
	q := d.qps.get(h)
	return q != nil && q.linked()
}

// linked reports whether the QP has a connection, or had or will have one.
func (q *QP) linked() bool {
	q.linking.Lock()
	defer q.linking.Unlock()
	return q.linkedLocked()
}

func (q *QP) linkedLocked() bool { return q.id != nil || q.orphan }

// hungUp is told when the peer has closed its half.
func (q *QP) hungUp() {
	if id := q.connection(); id != nil {
		id.disconnected()
	}
}
