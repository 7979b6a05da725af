// Package page makes one HTML page of the iWARP connections in a capture: what was sent over
// time and how long each RDMA Read took, a ladder of each startup, a map of the streams with
// TCP segments, FPDUs and markers, a table of the FPDUs with what the ULP says, and the findings,
// each with its rule and linked to its place.
//
// A [Page] consumes what package decode finds:
//
//	p := page.New(page.Config{Name: "siw.pcap"})
//	totals, err := decode.Run(file, decode.Config{}, p)
//	p.Totals(totals)
//	err = p.Write(out)
//
// # The page
//
// It is one file, and opens without a network: styles, scripts and data are in it, and
// its Content-Security-Policy forbids everything else. Without JavaScript there are still the
// ladders, the summaries and the findings. With it, the articles behind the first ones and the rows
// of a long list become elements when they are shown.
//
// Each part has an address, to link to: #c3 is connection 3, #c3-f12 its finding 12,
// #c3-p4711 the FPDU in row 4711 of its table.
//
// # The data
//
// Numbers are kept and written by column: each as its difference from the one before it
// in the same lane (mostly the direction), zigzag-coded as a varint of seven bits a byte,
// least significant first. Behind a zero stands how many zeros follow. The column is in
// base64. An FPDU with its TCP segment takes about 30 bytes on the page. js/data.js reads them.
//
// Memory is bounded by [Config]: what comes after the bounds are reached is counted, and the page
// says so.
package page
