package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestMistakes: a mistake on the command line gets its cause and what to do. mistakes.txtar has those that need files.
func TestMistakes(t *testing.T) {
	for line, want := range map[string]string{
		"rping h --rtr wirte":             `rping: --rtr: "wirte" is not one of its values (did you mean "write"?): expected write, read or send`,
		"rping h --dialect rfc5045":       `rping: --dialect: "rfc5045" is not one of its values (did you mean "rfc5044"?): expected rfc5044, rfc6581, rtr2007, revision0 or startkey`,
		"rping -s -c":                     `rping: --server and --client can't be used together: give one of them`,
		"rping":                           `rping: give HOST to ping, or be the server (-s)`,
		"rping -s h":                      `rping: "h": a server listens at -a ADDR, and a client takes HOST or -a HOST`,
		"serve --log xml":                 `serve: --log: "xml" is not one of its values: expected text or json`,
		"serve --idle":                    `serve: --idle: its value is missing, as in --idle=TIME`,
		"disk --block-size 1024 64M":      `disk: --block-size: "1024" is not one of its values: expected 512 or 4096`,
		"matrix --figure 5":               `matrix: --figure: "5" is not one of its values: expected 2, 3 or 4`,
		"completion powershell":           `completion: shell: "powershell" is not one of its values: expected bash, zsh or fish`,
		"cat --listen :1 --connect h":     `cat: --listen and --connect can't be used together: give one of them`,
		"cp f g":                          `cp: PATH: "f" and "g": one side must be remote (HOST:PATH), and the other local`,
		"cp --limit 10 f h:":              `cp: --limit: "10" is too slow: use 1K bytes a second or more, such as 10M`,
		"decode --filter foo x":           `decode: --filter: "foo": expected a connection (3), an SCTP session (s3), an address or address:port`,
		"decode a b":                      `decode: unexpected argument b: one capture at a time: join them with mergecap`,
		"decode --port 70000 a":           `decode: --port: "70000" is not a number from 1 to 65535`,
		"decode --port 7,http a":          `decode: --port: "http" is not a number from 1 to 65535`,
		"decode .":                        `decode: . is a directory: name a capture in it`,
		"study --loss 150":                `study: --loss: 150 is not a share from 0 to 50 percent`,
		"conform h --run nosuch":          `conform: --run: no case has an ID that matches "nosuch": --list shows all IDs`,
		"probe h --give-up five":          `probe: --give-up: "five" is not a duration, such as 5 (seconds), 400ms or 2m`,
		"conform --rerun nosuch":          `conform: --rerun: "nosuch" is not one of its values: expected last`,
		"conform --rerun last h":          `conform: --rerun: it takes its peer, cases and options from the last run: leave out HOST`,
		"conform --rerun last --run x":    `conform: --rerun: it takes its peer, cases and options from the last run: leave out --run`,
		"conform --listen h --rerun last": `conform: --rerun: it takes its peer, cases and options from the last run: leave out --listen`,
		"conform h --list --rerun-nosuch": `conform: unknown flag --rerun-nosuch; iwarp conform --help lists all`,
	} {
		var out, errs bytes.Buffer
		status := run(strings.Fields(line), streams{&out, &errs})
		if got := strings.TrimSpace(errs.String()); status != statusUsage || got != "iwarp: "+want {
			t.Errorf("%s: status %d, %s", line, status, got)
		}
	}
}
