package daemon

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"kctl/proto/release"
)

// What scripts and kubeadm read of --version, and what it may set.
func TestVersionFlag(t *testing.T) {
	t.Cleanup(func() { reported = "" })
	own := release.Version().GitVersion
	level, _, _ := strings.Cut(own, "+")
	for _, test := range []struct {
		args        string
		out         string // a regular expression, all of what is printed
		ran         string // the version while the command ran
		complaining string
	}{
		{"", "", own, ""},
		{"--version=false", "", own, ""},
		{"--version", "Kubernetes " + regexp.QuoteMeta(own) + "\n", "", ""},
		{"--version=true", "Kubernetes " + regexp.QuoteMeta(own) + "\n", "", ""},
		{"--version=raw", `version.Info\{Major:"1", .*GitVersion:"` + regexp.QuoteMeta(own) + `", .*\}` + "\n", "", ""},
		{"--version=" + level + "-of-us", "", level + "-of-us", ""},
		{"--version=v1.2.3", "", "", `version "v1.2.3" must match major/minor/patch of default version`},
		{"--version=v1", "", "", `illegal version string "v1"`},
		{"--version=nonsense", "", "", "invalid syntax"},
	} {
		reported = ""
		var out bytes.Buffer
		ran := ""
		cmd := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error {
			ran = Version().GitVersion
			return nil
		}}
		addVersionFlag(cmd)
		cmd.SetOut(&out)
		cmd.SetArgs(strings.Fields(test.args))
		err := cmd.Execute()
		if got := out.String(); !regexp.MustCompile("^(?s:"+test.out+")$").MatchString(got) || ran != test.ran {
			t.Errorf("%q prints %q, and the command ran as %q, want %q, %q", test.args, got, ran, test.out, test.ran)
		}
		if test.complaining == "" && err != nil || test.complaining != "" && (err == nil || !strings.Contains(err.Error(), test.complaining)) {
			t.Errorf("%q: %v, want %q", test.args, err, test.complaining)
		}
	}
}
