package daemon

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	semver "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"

	"kctl/proto/release"
)

// reported is the version that --version=vX.Y.Z… sets. It is written while flags are
// parsed, before anything runs that could read it.
var reported string

// Version is what /version and --version say.
func Version() version.Info {
	info := release.Version()
	if reported != "" {
		info.GitVersion = reported
	}
	return info
}

// UserAgent is how a daemon calls itself in requests.
func UserAgent(program string) string { return program + "/" + Version().GitVersion }

// versionFlag is --version of all daemons: it prints the version in upstream's words,
// which kubeadm reads, or with all details (raw), or sets the version that is reported.
type versionFlag string

const (
	versionPrinted versionFlag = "true"
	versionRaw     versionFlag = "raw"
)

// addVersionFlag makes --version part of the command, and what it prints an end to it.
func addVersionFlag(cmd *cobra.Command) {
	flag := versionFlag("false")
	cmd.Flags().Var(&flag, "version",
		"--version or --version=raw prints the version and exits; --version=vX.Y.Z... sets the version to report")
	cmd.Flags().Lookup("version").NoOptDefVal = string(versionPrinted)
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var err error
		switch flag {
		case versionPrinted:
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "Kubernetes %s\n", Version())
		case versionRaw:
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%#v\n", Version())
		default:
			err = run(cmd, args)
		}
		return err
	}
}

// Set accepts a version only if it is the one that the program speaks, with another suffix.
func (f *versionFlag) Set(text string) error {
	if text == string(versionRaw) {
		*f = versionRaw
		return nil
	}
	if !strings.HasPrefix(text, "v") {
		printed, err := strconv.ParseBool(text)
		*f = versionFlag(strconv.FormatBool(printed))
		return err
	}
	wanted, err := semver.ParseSemantic(text)
	if err != nil {
		return err
	}
	own := semver.MustParseSemantic(release.Version().GitVersion)
	if wanted.Major() != own.Major() || wanted.Minor() != own.Minor() || wanted.Patch() != own.Patch() {
		return fmt.Errorf("version %q must match major/minor/patch of default version %q", text, release.Version().GitVersion)
	}
	*f, reported = versionFlag(text), text
	return nil
}

func (f *versionFlag) String() string { return string(*f) }

// Type is shown by --help, as upstream's.
func (f *versionFlag) Type() string { return "version" }
