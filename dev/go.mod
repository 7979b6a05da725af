module github.com/goiwarp/iwarp/dev

go 1.26.0

toolchain go1.26.8

replace github.com/goiwarp/iwarp => ../

require (
	github.com/alecthomas/kong v1.17.0
	github.com/goiwarp/iwarp v0.0.0-00010101000000-000000000000
	github.com/google/go-cmp v0.7.0
	github.com/wcharczuk/go-chart/v2 v2.1.2
	golang.org/x/sys v0.50.0
	golang.org/x/tools v0.52.0
)

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0 // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/google/btree v1.1.2 // indirect
	github.com/pion/logging v0.2.4 // indirect
	github.com/pion/randutil v0.1.0 // indirect
	github.com/pion/sctp v1.12.1 // indirect
	github.com/pion/transport/v5 v5.1.4 // indirect
	golang.org/x/exp v0.0.0-20231110203233-9a3e6036ecaa // indirect
	golang.org/x/image v0.18.0 // indirect
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/time v0.16.0 // indirect
	gvisor.dev/gvisor v0.0.0-20260224225140-573d5e7127a8 // indirect
)
