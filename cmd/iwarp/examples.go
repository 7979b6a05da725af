package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// examples returns command lines of each command that people begin with. What follows # says what it does.
func examples() map[string][]string {
	return map[string][]string{
		"demo": {"iwarp demo"},
		"perf": {"iwarp perf", "iwarp perf --op Write --size 64,1M", "iwarp perf --network sctp"},
		"run":  {"iwarp run rping -s -v", "iwarp run rping -c -a 127.0.0.1 -v -C 10  # beside it", "iwarp run --status"},
		"serve": {"iwarp serve", "iwarp serve --dir /srv --writable  # for iwarp cp",
			"iwarp serve --metrics :9401 --log json"},
		"cp": {"iwarp cp -r photos HOST:", "iwarp cp HOST:photos/1.jpg .",
			"iwarp cp -r --resume photos HOST:  # after a cut"},
		"cat": {"iwarp cat --listen :7174 >copy", "iwarp cat HOST <file"},
		"disk": {"iwarp disk --create 10G disk.img", "iwarp disk --list HOST",
			"iwarp disk --read nvme://HOST/NQN --out copy.img", "iwarp disk disk.img --metrics :9175 --log json"},
		"decode": {"iwarp decode FILE.pcap", "iwarp decode FILE.pcap --html page.html",
			"iwarp decode -i eth0", "tcpdump -U -w - -s 0 | iwarp decode -"},
		"extcap": {"iwarp extcap --install  # then: wireshark -k -i iwarp"},
		"probe":  {"iwarp probe HOST", "iwarp probe HOST --slow --json"},
		"conform": {"iwarp conform HOST", "iwarp conform HOST --run ^startup/ -v",
			"iwarp conform --listen :7174 --exec 'rping -c -a {host} -p {port}'"},
		"matrix":     {"iwarp matrix", "iwarp matrix --run ^dialects/ -v"},
		"rping":      {"iwarp rping -s -v", "iwarp rping HOST -C 3"},
		"study":      {"iwarp study", "iwarp study --loss 0.1 --delay 5ms"},
		"completion": {"source <(iwarp completion bash)", "iwarp completion fish >~/.config/fish/completions/iwarp.fish"},
		"man":        {"iwarp man perf | man -l -", "iwarp man --dir /usr/local/share/man/man1"},
		"help":       {"iwarp help perf"},
		"version":    {"iwarp version --json"},
	}
}

// printExamples prints those of a command.
func printExamples(w io.Writer, command string) {
	fmt.Fprintln(w, "\nExamples:")
	for _, line := range examples()[command] {
		fmt.Fprintf(w, "  %s\n", line)
	}
}

// groups are the options that several commands have, or that are many, under the title that they have in the help.
func groups() map[string][]string {
	return map[string][]string{
		"Network:":         {"network", "tun"},
		"TLS:":             {"tls", "tls-cert", "tls-key", "tls-ca", "tls-name", "tls-insecure"},
		"Recording:":       {"pcap", "pcap-limit"},
		"Startup of MPA:":  {"mpa-rev", "kind", "dialect", "markers", "crc", "p2p", "rtr", "private-data", "reject", "no-fallback", "say", "answer"},
		"Reports:":         {"verbose", "json", "junit", "markdown", "title"},
		"Time:":            {"timeout", "quiet", "slow-timeout", "wait", "give-up", "limit", "idle", "grace", "drain", "patience"},
		"Use other disks:": {"read", "write", "list", "out", "force", "peer"},
	}
}

// grouped has the help print options by group.
func grouped(k *kong.Kong) error {
	for _, command := range k.Model.Children {
		for _, flag := range command.Flags {
			for title, names := range groups() {
				if slices.Contains(names, flag.Name) && belongs(command.Name, title) {
					flag.Group = &kong.Group{Key: title, Title: title}
				}
			}
		}
	}
	return nil
}

// belongs reports whether a command has a group: some names are those of other options elsewhere.
func belongs(command, title string) bool {
	switch title {
	case "Use other disks:":
		return command == "disk"
	case "Time:":
		return !slices.Contains([]string{"disk", "cp"}, command)
	case "Reports:":
		return slices.Contains([]string{"conform", "matrix", "probe"}, command)
	}
	return !strings.HasPrefix(command, "study")
}
