package handlers_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"sigs.k8s.io/yaml"

	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

func TestPatchFormats(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	for _, c := range []struct{ media, patch, want string }{
		{"application/json-patch+json", `[{"op":"replace","path":"/data/k","value":"json"}]`, "json"},
		{"application/merge-patch+json", `{"data":{"k":"merge"}}`, "merge"},
		{"application/strategic-merge-patch+json", `{"data":{"k":"strategic"}}`, "strategic"},
	} {
		var got core.ConfigMap
		a := s.do("PATCH", collection+"/a", c.patch, "Content-Type", c.media)
		if a.into(t, &got); a.code != 200 || got.Data["k"] != c.want {
			t.Errorf("%s: %d %s", c.media, a.code, a.body)
		}
	}
}

func TestFormsIn(t *testing.T) {
	s := start(t)
	obj := &core.ConfigMap{
		TypeMeta: metav1.TypeMeta{Kind: "ConfigMap", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: "proto"}, Data: map[string]string{"k": "v"},
	}
	body, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), obj)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ media, body string }{
		"proto": {"application/vnd.kubernetes.protobuf", string(body)},
		"yaml":  {"application/yaml", "metadata:\n  name: yaml\ndata:\n  k: v\n"},
	} {
		var got core.ConfigMap
		a := s.do("POST", collection, c.body, "Content-Type", c.media)
		if a.into(t, &got); a.code != 201 || got.Data["k"] != "v" || got.Name != name {
			t.Errorf("%s: %d %s", c.media, a.code, a.body)
		}
	}
}

func TestFormsOut(t *testing.T) {
	s := start(t)
	made := s.create("a", "1")
	t.Run("yaml", func(t *testing.T) {
		var got core.ConfigMap
		a := s.do("GET", collection+"/a", "", "Accept", "application/yaml")
		if err := yaml.Unmarshal(a.body, &got); err != nil || got.UID != made.UID || a.header.Get("Content-Type") != "application/yaml" {
			t.Errorf("%v: %s", err, a.body)
		}
	})
	t.Run("protobuf", func(t *testing.T) {
		a := s.do("GET", collection, "", "Accept", "application/vnd.kubernetes.protobuf,application/json")
		obj, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(a.body, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		list := obj.(*corev1.ConfigMapList)
		if len(list.Items) != 1 || list.Items[0].UID != made.UID || list.ResourceVersion == "" {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("table", func(t *testing.T) {
		var table metav1.Table
		s.do("GET", collection, "", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json").into(t, &table)
		if table.Kind != "Table" || table.APIVersion != "meta.k8s.io/v1" || len(table.ColumnDefinitions) != 2 || len(table.Rows) != 1 ||
			table.Rows[0].Cells[0] != "a" {
			t.Fatalf("got %+v", table)
		}
		var partial metav1.PartialObjectMetadata
		if err := json.Unmarshal(table.Rows[0].Object.Raw, &partial); err != nil || partial.Kind != "PartialObjectMetadata" || partial.Name != "a" {
			t.Errorf("row's object: %s, %v", table.Rows[0].Object.Raw, err)
		}
	})
	t.Run("metadata", func(t *testing.T) {
		var list metav1.PartialObjectMetadataList
		s.do("GET", collection, "", "Accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io").into(t, &list)
		if list.Kind != "PartialObjectMetadataList" || len(list.Items) != 1 || list.Items[0].Name != "a" {
			t.Errorf("got %+v", list)
		}
	})
	t.Run("pretty", func(t *testing.T) {
		if a := s.do("GET", collection+"/a?pretty=true", ""); !bytes.Contains(a.body, []byte("\n  \"metadata\": {")) {
			t.Errorf("got %s", a.body)
		}
		for tool, want := range map[string]bool{"curl/8.5.0": true, "Mozilla/5.0 (X11)": true, "kubectl/v1.37.0": false} {
			if a := s.do("GET", collection+"/a", "", "User-Agent", tool); bytes.Contains(a.body, []byte("\n  \"metadata\": {")) != want {
				t.Errorf("%s: got %s", tool, a.body)
			}
		}
		if a := s.do("GET", collection+"/a?pretty=false", "", "User-Agent", "curl/8.5.0"); bytes.Contains(a.body, []byte("\n ")) {
			t.Errorf("got %s", a.body)
		}
	})
	t.Run("preference", func(t *testing.T) {
		a := s.do("GET", collection+"/a", "", "Accept", "application/yaml;q=0.5, application/json;q=0.9")
		if a.header.Get("Content-Type") != jsonType {
			t.Errorf("got %s", a.header.Get("Content-Type"))
		}
	})
}

// TestListsSayTheirKindOnce: the items of a list have no kind, in JSON and in
// YAML, and lack nothing else.
func TestListsSayTheirKindOnce(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	s.create("b", "2")
	for _, media := range []string{"application/json", "application/yaml"} {
		var list corev1.ConfigMapList
		a := s.do("GET", collection, "", "Accept", media)
		if err := yaml.UnmarshalStrict(a.body, &list); err != nil {
			t.Fatalf("%v: %s", err, a.body)
		}
		if list.Kind != "ConfigMapList" || list.APIVersion != "v1" || len(list.Items) != 2 {
			t.Fatalf("%s: %s", media, a.body)
		}
		for i, item := range list.Items {
			if item.TypeMeta != (metav1.TypeMeta{}) || item.Name != []string{"a", "b"}[i] || item.Data["k"] == "" || item.ResourceVersion == "" {
				t.Errorf("%s: item %+v", media, item)
			}
		}
	}
}

func TestLargeListsAreCompressed(t *testing.T) {
	s := start(t)
	for _, name := range []string{"a", "b", "c"} {
		s.create(name, "v")
		s.do("PATCH", collection+"/"+name, `{"data":{"k":"`+strings.Repeat("x", 60<<10)+`"}}`, "Content-Type", "application/merge-patch+json")
	}
	a := s.do("GET", collection, "", "Accept-Encoding", "gzip")
	if a.header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("%d bytes came as they are", len(a.body))
	}
	z, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	var list corev1.ConfigMapList
	if err := json.NewDecoder(z).Decode(&list); err != nil || len(list.Items) != 3 {
		t.Errorf("%d items, %v", len(list.Items), err)
	}
	if a := s.do("GET", collection+"/a", "", "Accept-Encoding", "gzip"); a.header.Get("Content-Encoding") != "" {
		t.Error("a small body was compressed")
	}
}
