package kubeconfig

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/spf13/pflag"
	clientrest "k8s.io/client-go/rest"
)

// A user of a kubeconfig may act as another one; flags come before what the file says.
func TestImpersonationOfTheKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: x, clusters: [{name: x, cluster: {server: "https://127.0.0.1:1"}}],
contexts: [{name: x, context: {cluster: x, user: x}}], users: [{name: x, user: {as: jane, as-uid: "7", as-groups: [g], as-user-extra: {k: [v], l: [w]}}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		flags []string
		want  clientrest.ImpersonationConfig
	}{
		{nil, clientrest.ImpersonationConfig{UserName: "jane", UID: "7", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}, "l": {"w"}}}},
		{[]string{"--as=bob", "--as-user-extra=k=x"}, clientrest.ImpersonationConfig{
			UserName: "bob", UID: "7", Groups: []string{"g"}, Extra: map[string][]string{"k": {"x"}, "l": {"w"}},
		}},
		{[]string{"--as-uid=8", "--as-group=h"}, clientrest.ImpersonationConfig{
			UserName: "jane", UID: "8", Groups: []string{"h"}, Extra: map[string][]string{"k": {"v"}, "l": {"w"}},
		}},
	} {
		flags, set := &Flags{}, pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.Add(set)
		if err := set.Parse(append(test.flags, "--kubeconfig="+file)); err != nil {
			t.Fatal(err)
		}
		target, err := flags.Load()
		if err != nil {
			t.Fatal(err)
		}
		if got := target.Client.Impersonate; !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: as %+v, want %+v", test.flags, got, test.want)
		}
	}
}
