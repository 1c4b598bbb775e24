package handlers_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// follow opens a watch and returns a function that reads its next event.
func (s *server) follow(query string, headers ...string) (next func() (string, json.RawMessage)) {
	s.t.Helper()
	return s.followAt(collection+"?watch=true&"+query, headers...)
}

func (s *server) followAt(path string, headers ...string) (next func() (string, json.RawMessage)) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), "GET", s.URL+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewReader(res.Body)
	return func() (string, json.RawMessage) {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err.Error(), nil
		}
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := json.Unmarshal(line, &event); err != nil {
			s.t.Fatalf("%v in %s", err, line)
		}
		return event.Type, event.Object
	}
}

// TestWatchPaths: the deprecated paths that contain "watch" are served.
func TestWatchPaths(t *testing.T) {
	s := start(t)
	s.create("b", "1")
	s.create("a", "1")
	const root = "/api/v1/watch/"
	whole, one := []string{root + "configmaps", root + "namespaces/default/configmaps"}, root+"namespaces/default/configmaps/a"
	for _, path := range whole {
		next := s.followAt(path)
		for range 2 {
			if kind, object := next(); kind != "ADDED" {
				t.Errorf("%s: %s %s", path, kind, object)
			}
		}
	}
	next := s.followAt(one)
	if kind, object := next(); kind != "ADDED" || !bytes.Contains(object, []byte(`"name":"a"`)) {
		t.Errorf("%s: %s %s", one, kind, object)
	}
	s.do("DELETE", collection+"/b", "")
	s.do("PUT", collection+"/a", configMap("a", "2"))
	if kind, object := next(); kind != "MODIFIED" || !bytes.Contains(object, []byte(`"k":"2"`)) {
		t.Errorf("%s: %s %s", one, kind, object)
	}
}

func TestWatch(t *testing.T) {
	s := start(t)
	made := s.create("a", "1")
	all := s.follow("resourceVersion=" + made.ResourceVersion)
	ones := s.follow("labelSelector=app%3D1")
	table := s.follow("", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if kind, _ := ones(); kind != "ADDED" {
		t.Errorf("initial state: %s", kind)
	}
	s.do("PUT", collection+"/a", configMap("a", "2"))
	if kind, object := all(); kind != "MODIFIED" || !bytes.Contains(object, []byte(`"k":"2"`)) {
		t.Errorf("got %s %s", kind, object)
	}
	if kind, object := ones(); kind != "DELETED" || !bytes.Contains(object, []byte(`"k":"1"`)) {
		t.Errorf("an object that no longer matches: %s %s", kind, object)
	}
	s.do("PUT", collection+"/a", configMap("a", "1"))
	if kind, _ := ones(); kind != "ADDED" {
		t.Errorf("an object that now matches: %s", kind)
	}
	s.do("DELETE", collection+"/a", "")
	all()
	if kind, object := all(); kind != "DELETED" || !bytes.Contains(object, []byte(`"k":"1"`)) {
		t.Errorf("got %s %s", kind, object)
	}
	for i, want := range []string{"ADDED", "MODIFIED"} {
		kind, object := table()
		var row metav1.Table
		if err := json.Unmarshal(object, &row); err != nil {
			t.Fatal(err)
		}
		if kind != want || len(row.Rows) != 1 || (len(row.ColumnDefinitions) > 0) != (i == 0) {
			t.Errorf("table event %d: %s %s", i, kind, object)
		}
	}
}

func TestWatchOfOneAndItsEnd(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	s.create("b", "1")
	next := s.follow("fieldSelector=metadata.name%3Db&timeoutSeconds=1")
	if kind, object := next(); kind != "ADDED" || !bytes.Contains(object, []byte(`"name":"b"`)) {
		t.Errorf("got %s %s", kind, object)
	}
	if kind, _ := next(); kind != io.EOF.Error() {
		t.Errorf("after timeoutSeconds: %s", kind)
	}
}

func TestWatchInProtobuf(t *testing.T) {
	s := start(t)
	made := s.create("a", "1")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", s.URL+collection+"?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf;stream=watch")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var head [4]byte
	if _, err := io.ReadFull(res.Body, head[:]); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, int(head[0])<<24|int(head[1])<<16|int(head[2])<<8|int(head[3]))
	if _, err := io.ReadFull(res.Body, body); err != nil {
		t.Fatal(err)
	}
	var event metav1.WatchEvent
	if err := event.Unmarshal(body); err != nil {
		t.Fatal(err)
	}
	obj, _, err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Decode(event.Object.Raw, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if event.Type != "ADDED" || obj.(*core.ConfigMap).UID != made.UID {
		t.Errorf("got %s %+v", event.Type, obj)
	}
}

func TestStreamedList(t *testing.T) {
	s := start(t)
	s.create("a", "1")
	next := s.follow("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=")
	if kind, _ := next(); kind != "ADDED" {
		t.Errorf("first: %s", kind)
	}
	kind, object := next()
	var mark core.ConfigMap
	if err := json.Unmarshal(object, &mark); err != nil {
		t.Fatal(err)
	}
	if kind != "BOOKMARK" || mark.Annotations["k8s.io/initial-events-end"] != "true" || mark.ResourceVersion == "" || mark.Kind != "ConfigMap" {
		t.Errorf("got %s %s", kind, object)
	}
}
