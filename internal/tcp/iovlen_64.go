//go:build linux && (amd64 || arm64 || riscv64 || loong64 || mips64 || mips64le || ppc64 || ppc64le || s390x)

package tcp

func iovLen(n int) uint64 { return uint64(n) }
