package command

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kctl/kubectl/internal/preferences"
)

const preferenceHead = "apiVersion: kubectl.config.k8s.io/v1beta1\nkind: Preference\n"

// TestPreferences compares kctl with what kubectl 1.37 did with the same files.
func TestPreferences(t *testing.T) {
	versionClient := preferenceHead + "defaults: [{command: version, options: [{name: client, default: 'true'}]}]\n"
	alias := func(rest string) string {
		return preferenceHead + "aliases: [{name: sc, command: config set-cluster, prependArgs: [first]" + rest + "}]\n"
	}
	for _, each := range []struct {
		name, file string
		args       []string
		code       int
		out, err   string
	}{
		{"a default", versionClient, []string{"version"}, 0, "Client Version", ""},
		{"a flag comes before its default", versionClient, []string{"version", "--client=false"}, 1, "", "no cluster is configured"},
		{"of two defaults the last", strings.Replace(versionClient, "}]\n", "},{command: version, options: [{name: client, default: 'false'}]}]\n", 1),
			[]string{"version"}, 1, "", "no cluster is configured"},
		{"of two options the last", strings.Replace(versionClient, "{name", "{name: client, default: 'false'}, {name", 1), []string{"version"}, 0, "Client Version",
			""},
		{"a command between blanks", strings.Replace(versionClient, "command: version", "command: ' version '", 1), []string{"version"}, 0, "Client Version", ""},
		{"two aliases of one name", preferenceHead + "aliases: [{name: a, command: version},{name: a, command: version}]", []string{"version", "--client"}, 1, "",
			"duplicate alias name a"},
		{"completion of an alias", alias(", appendArgs: [second], options: [{name: server, default: 'http://a'}]"), []string{"__complete", "sc", "--tls"}, 0,
			"--tls-server-name", ""},
		{"completion of an alias's flag", preferenceHead + "aliases: [{name: g, command: get}]", []string{"__complete", "g", "-o", "jsonpath-"}, 0,
			"jsonpath-as-json", ""},
		{"completion of a verb that has defaults", versionClient, []string{"__complete", "version", "--cl"}, 0, "--client", ""},
		{"of v1alpha1", strings.NewReplacer("v1beta1", "v1alpha1", "defaults", "overrides", "options", "flags").Replace(versionClient), []string{"version"}, 0,
			"Client Version", ""},
		{"with dashes", strings.Replace(versionClient, "name: client", "name: --client", 1), []string{"version"}, 1, "",
			"preferences flag name --client should be in long form"},
		{"short", strings.Replace(versionClient, "name: client", "name: o", 1), []string{"version"}, 1, "", "invalid flag o for command version"},
		{"no value of the flag", strings.Replace(versionClient, "true", "maybe", 1), []string{"version"}, 1, "", "could not apply value maybe to flag client"},
		{"unknown command", strings.Replace(versionClient, "command: version", "command: kubectl version", 1), []string{"version", "--client"}, 0, "Client Version",
			`Warning: command "kubectl version" not found`},
		{"unknown field", versionClient + "foo: bar", []string{"version"}, 0, "Client Version", `ignoring strict decoding error`},
		{"unknown version", strings.Replace(versionClient, "v1beta1", "v9", 1), []string{"version"}, 1, "", "no valid preferences found"},
		{"garbage", "a: [", []string{"version", "--client"}, 1, "", "no valid preferences found"},
		{"empty", "", []string{"version", "--client"}, 0, "Client Version", ""},
		{"alias", alias(", options: [{name: server, default: 'http://a'}]"), []string{"sc"}, 0, `Cluster "first" set.`, ""},
		{"alias and arguments", alias(""), []string{"sc", "second"}, 1, "", "config set-cluster"},
		{"alias after flags", alias(""), []string{"-n", "sc", "sc"}, 0, `Cluster "first" set.`, ""},
		{"unknown flag of an alias", alias(", options: [{name: nosuch, default: a}]"), []string{"sc"}, 1, "", "invalid flag nosuch"},
		{"alias without its command's defaults", versionClient + "aliases: [{name: vv, command: version}]", []string{"vv"}, 1, "", "no cluster is configured"},
		{"alias called as a command", preferenceHead + "aliases: [{name: options, command: version}]", []string{"options"}, 0, "--kubeconfig", ""},
		{"alias of an alias", preferenceHead + "aliases: [{name: a, command: version},{name: b, command: a}]", []string{"b"}, 1, "",
			`command "a" not found to set alias "b"`},
		{"alias that is no word", preferenceHead + "aliases: [{name: a b, command: version}]", []string{"version", "--client"}, 1, "",
			"can only include alphabetical characters"},
		{"unknown policy", preferenceHead + "credentialPluginPolicy: Nope", []string{"version", "--client"}, 1, "", `unknown plugin policy: "Nope"`},
		{"empty allowlist", preferenceHead + "credentialPluginPolicy: Allowlist", []string{"version", "--client"}, 1, "", "allowlist is unspecified"},
		{"allowlist of another policy", preferenceHead + "credentialPluginPolicy: DenyAll\ncredentialPluginAllowlist: [{command: a}]",
			[]string{"version", "--client"}, 1, "", "allowlist is non-nil"},
	} {
		t.Run(each.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kuberc")
			if err := os.WriteFile(file, []byte(each.file), 0o600); err != nil {
				t.Fatal(err)
			}
			t.Setenv(preferences.Environment, file)
			c := kctl(t, "", "", each.args...)
			if c.code == 1 && strings.HasPrefix(c.out.String(), "Client Version") {
				c.out.Reset() // what version prints before it asks the server
			}
			c.want(t, each.code, each.err)
			if !strings.Contains(c.out.String(), each.out) {
				t.Errorf("standard output is\n%s\nwant %q in it", c.out.String(), each.out)
			}
		})
	}
}

// TestPreferencesFile: which file is read, and what happens if it does not
// exist.
func TestPreferencesFile(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv(preferences.Environment, filepath.Join(home, "nosuch"))
	kctl(t, "", "", "version", "--client").want(t, 1, "nosuch: no such file")
	kctl(t, "", "", "version", "--client", "--kuberc=other").want(t, 1, "other: no such file")
	kctl(t, "", "", "version", "--kuberc").want(t, 1, "flag needs an argument")
	t.Setenv(preferences.Environment, preferences.Off)
	kctl(t, "", "", "version", "--client").want(t, 0)
	kctl(t, "", "", "kuberc", "view").want(t, 1, "KUBERC is disabled")
	kctl(t, "", "", "version", "--client", "--kuberc=other").want(t, 1, "mutually exclusive")
	file := filepath.Join(home, "kuberc")
	t.Setenv(preferences.Environment, file)
	if err := (&preferences.Preference{}).Save(file); err != nil {
		t.Fatal(err)
	}
	set := func(args ...string) *call {
		return kctl(t, "", "", append([]string{"kuberc", "set", "--kuberc=" + file}, args...)...)
	}
	set().want(t, 1, `required flag(s) "section" not set`)
	set("--section=x").want(t, 1, `got: x`)
	set("--section=defaults", "--command=version", "--option=client").want(t, 1, `invalid option format "client"`)
	set("--section=defaults", "--command=version", "--option=client=true").want(t, 0)
	kctl(t, "", "", "kuberc", "view", "-o", "jsonpath={.aliases}", "--kuberc", file).prints(t, "[]") // none, which is not null
	set("--section=defaults", "--command=version").want(t, 1, "already exist, use --overwrite")
	set("--section=aliases", "--name=vv", "--command=version", "--option=output=json").want(t, 0)
	set("--section=aliases", "--name=vv", "--command=version").want(t, 1, "already exists, use --overwrite")
	set("--section=aliases", "--name=vv", "--command=version", "--overwrite", "--appendarg=--client").want(t, 0)
	set("--section=credentialplugin", "--policy=DenyAll", "--allowlist-entry=command=a").want(t, 1, "may only be used")
	for entry, wrong := range map[string]string{"command=": "empty value in allowlist entry", "name=a": `"name" is deprecated`, "x=a": "unrecognized",
		"a": "improperly formatted"} {
		set("--section=credentialplugin", "--policy=Allowlist", "--allowlist-entry="+entry).want(t, 1, wrong)
	}
	set("--section=credentialplugin", "--policy=Allowlist", "--allowlist-entry=command=a").want(t, 0)
	kctl(t, "", "", "version", "--kuberc", file).want(t, 0)
	if c := kctl(t, "", "", "vv", "--kuberc", file); c.code != 0 || !strings.HasPrefix(c.out.String(), "{") {
		t.Errorf("the alias ends with %d: %s%s", c.code, c.out.String(), c.err.String())
	}
	c := kctl(t, "", "", "kuberc", "view", "--kuberc", file)
	if want := `aliases:
- appendArgs:
  - --client
  command: version
  name: vv
  options:
  - default: json
    name: output
apiVersion: kubectl.config.k8s.io/v1beta1
credentialPluginAllowlist:
- command: a
credentialPluginPolicy: Allowlist
defaults:
- command: version
  options:
  - default: "true"
    name: client
kind: Preference
`; c.out.String() != want {
		t.Errorf("kuberc view printed\n%s%s\nwant\n%s", c.out.String(), c.err.String(), want)
	}
}

// TestPluginPolicy: a kubeconfig's program runs only if the policy allows it.
func TestPluginPolicy(t *testing.T) {
	server := httptest.NewTLSServer(status(404, "", "asked"))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	program := filepath.Join(dir, "plugin")
	config := filepath.Join(dir, "config")
	for file, content := range map[string]string{
		program: "#!/bin/sh\ntouch " + ran +
			"\necho '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}'\n",
		config: "apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: " +
			"{insecure-skip-tls-verify: true, server: \"" + server.URL + "\"}}]\n" +
			"users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: " + program + "}}}]\n",
	} {
		if err := os.WriteFile(file, []byte(content), 0o700); err != nil { //nolint:gosec // one is a program
			t.Fatal(err)
		}
	}
	for policy, may := range map[string]bool{
		"":        true,
		"DenyAll": false,
		"Allowlist\ncredentialPluginAllowlist: [{command: /nosuch}]":         false,
		"Allowlist\ncredentialPluginAllowlist: [{command: " + program + "}]": true,
	} {
		if err := os.RemoveAll(ran); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "kuberc")
		if err := os.WriteFile(file, []byte(preferenceHead+"credentialPluginPolicy: "+policy+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv(preferences.Environment, file)
		c := kctl(t, "", "", "get", "--raw", "/x", "--kubeconfig", config)
		if _, err := os.Stat(ran); (err == nil) != may || c.code != 1 {
			t.Errorf("%q: the plugin ran: %v, want %v; code %d: %s", policy, err == nil, may, c.code, c.err.String())
		}
	}
}
