package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// services are the commands whose options can also be set by environment variables, as units and containers do.
func services() []string { return []string{"serve", "disk"} }

// fromEnvironment has a variable stand for each option of a service that the command line does not set.
func fromEnvironment(k *kong.Kong) error {
	for _, command := range k.Model.Children {
		for _, flag := range command.Flags {
			if isService(command.Name) && flag.Name != "help" && flag.Name != "version" {
				flag.Envs = []string{variable(command.Name, flag.Name)}
				flag.Value.Tag.Envs = flag.Envs
			}
		}
	}
	return nil
}

// variable is the name of the variable of an option: IWARP_SERVE_MAX_CONNECTIONS of --max-connections.
func variable(command, flag string) string {
	return "IWARP_" + strings.ToUpper(command+"_"+strings.ReplaceAll(flag, "-", "_"))
}

func isService(command string) bool { return slices.Contains(services(), command) }

// variables are those of all options of a service.
func variables(command *kong.Node) (names []string) {
	for _, flag := range command.Flags {
		names = append(names, flag.Envs...)
	}
	return names
}

// warnOfVariables names the variables that look as if they set an option of a service, and set none.
func warnOfVariables(w io.Writer, command *kong.Node) {
	if command == nil || !isService(command.Name) {
		return
	}
	known := variables(command)
	for _, assignment := range os.Environ() {
		name, _, _ := strings.Cut(assignment, "=")
		if strings.HasPrefix(name, variable(command.Name, "")) && !slices.Contains(known, name) && !ofKubernetes(name) {
			text := fmt.Sprintf("the variable %s sets no option%s", name, suggest(name, known))
			if logsJSON(command) {
				slog.New(slog.NewJSONHandler(w, nil)).Warn(text)
			} else {
				fmt.Fprintf(w, "iwarp: %s: %s\n", command.Name, text)
			}
		}
	}
}

// logsJSON reports whether a service is to log in JSON.
func logsJSON(command *kong.Node) bool {
	flag := flagOf(command, func(f *kong.Flag) bool { return f.Name == "log" })
	return flag != nil && flag.Target.String() == "json"
}

// ofKubernetes reports whether Kubernetes sets a variable of such a name, for a Service with the name of ours.
func ofKubernetes(name string) bool {
	return strings.Contains(name, "_SERVICE_") || strings.Contains(name+"_", "_PORT_")
}

// withoutVariables is kong's help of a value: one line below tells of the variables of all.
func withoutVariables(value *kong.Value) string { return value.Help }

// environmentText says how the options of a service are set without a command line.
func environmentText(command string) string {
	return "A variable can set each option that the command line does not: " + variable(command, "metrics") +
		" for --metrics, and so on."
}
