package testrig

// Numbered returns n octets, none of them zero, which differ from their neighbors.
func Numbered(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i%251) + 1
	}
	return b
}
