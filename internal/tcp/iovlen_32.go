//go:build linux && (386 || arm || mips || mipsle)

package tcp

func iovLen(n int) uint32 { return uint32(n) }
