package rdmap

// A ring is a first-in first-out queue of at most limit entries. Its memory
// grows with what is in it, so that a high limit costs nothing by itself.
type ring[T any] struct {
	buf   []T // its length is zero or a power of two
	head  int
	n     int
	limit int
}

func (r *ring[T]) full() bool { return r.n >= r.limit }

// at returns the i-th entry from the oldest on.
func (r *ring[T]) at(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring[T]) push(v T) bool {
	if r.full() {
		return false
	}
	if r.n == len(r.buf) {
		r.grow()
	}
	r.n++
	*r.at(r.n - 1) = v
	return true
}

func (r *ring[T]) pop() (v T) {
	v, *r.at(0) = *r.at(0), v
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return v
}

func (r *ring[T]) grow() {
	buf := make([]T, max(4, 2*len(r.buf)))
	for i := range r.n {
		buf[i] = *r.at(i)
	}
	r.buf, r.head = buf, 0
}
