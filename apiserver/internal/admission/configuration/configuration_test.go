package configuration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "part.yaml"), []byte("apiVersion: a/v1\nkind: K\nwords: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ content, want string }{
		"inline":         {header + "- name: P\n  configuration: {apiVersion: a/v1, kind: K, words: 1}\n", ""},
		"beside it":      {header + "- name: P\n  path: part.yaml\n", ""},
		"absolute":       {header + "- name: P\n  path: " + filepath.Join(directory, "part.yaml") + "\n", ""},
		"missing":        {header + "- name: P\n  path: none.yaml\n", "none.yaml: no such file"},
		"both":           {header + "- name: P\n  path: part.yaml\n  configuration: {a: 1}\n", "plugins[0] (P): has both"},
		"neither":        {header + "- name: P\n", "plugins[0] (P): has neither"},
		"twice":          {header + "- name: P\n  path: part.yaml\n- name: P\n  path: part.yaml\n", "plugins[1] (P): is duplicated"},
		"no name":        {header + "- path: part.yaml\n", "plugins[0] (): has no name"},
		"other kind":     {"apiVersion: v1\nkind: Pod\n", "must be an AdmissionConfiguration"},
		"unknown field":  {"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugin: []\n", "unknown field"},
		"no YAML":        {"{", "yaml"},
		"another's part": {header + "- name: P\n  configuration: {apiVersion: b/v1, kind: K}\n", "configuration of P: is a K of \"b/v1\", and must be a K of a/v1"},
		"unknown word":   {header + "- name: P\n  configuration: {apiVersion: a/v1, kind: K, wodrs: 1}\n", "configuration of P: "},
	} {
		path := filepath.Join(directory, "config.yaml")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		files, err := Load(path)
		var into struct {
			Words int `json:"words"`
		}
		found := false
		if err == nil {
			found, err = files.Decode("P", Kind{Kind: "K", Versions: []string{"a/v1"}}, &into)
		}
		switch {
		case c.want == "" && (err != nil || !found || into.Words != 1):
			t.Errorf("%s: %v, found %v, %+v", name, err, found, into)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s:\n  got: %v\n want: %s", name, err, c.want)
		}
	}
	if files, err := Load(""); err != nil || files != nil {
		t.Errorf("no file: %v, %v", files, err)
	}
}
