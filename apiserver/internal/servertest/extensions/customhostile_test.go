package extensions

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// hostile: bad definitions are refused, in bounded time.
func (c *custom) hostile() {
	deep := `{"type":"string"}`
	for range 3000 {
		deep = `{"type":"object","properties":{"a":` + deep + `}}`
	}
	for name, text := range map[string]string{
		"a reference":       `{"type":"object","properties":{"a":{"$ref":"#/definitions/a"}},"definitions":{"a":{"$ref":"#"}}}`,
		"no type":           `{"properties":{"a":{"type":"string"}}}`,
		"a bad pattern":     `{"type":"object","properties":{"a":{"type":"string","pattern":"(((("}}}`,
		"doubled structure": `{"type":"object","properties":{"a":{"type":"object","allOf":[{"type":"object"}]}}}`,
	} {
		d := widgets("hostile.test")
		props := &apiextensionsv1.JSONSchemaProps{}
		c.Must(json.Unmarshal([]byte(text), props))
		d.Spec.Versions[0].Schema.OpenAPIV3Schema = props
		if code, answer, _ := c.call("POST", definitionsPath, d); code != 422 {
			c.T.Errorf("%s: %d %v", name, code, answer["message"])
		}
	}
	d := widgets("deep.test")
	text, err := json.Marshal(d)
	c.Must(err)
	nested := strings.Replace(string(text), `{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`, `{"openAPIV3Schema":`+deep+`}`, 1)
	if code, answer, _ := c.call("POST", definitionsPath, nested); code != 201 && code != 422 && code != 400 {
		c.T.Errorf("deep: %d %v", code, answer["message"])
	}
}

// verbs: for paths with "watch" or "proxy" before the resource, that word
// decides the verb, whatever the method; for no others.
func (c *custom) verbs() {
	const group = "verbs.test"
	c.define(widgets(group))
	const objects = "/namespaces/default/widgets"
	path := "/apis/" + group + "/v1"
	c.want(201, "POST", path+objects, widget(group+"/v1", "a", `{"color":"red"}`))
	for _, prefix := range []string{"/watch", "/proxy"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			for _, of := range []string{objects, objects + "/a", objects + "/a/status"} {
				code, answer, _ := c.call(method, path+prefix+of, widget(group+"/v1", "a", `{"color":"blue"}`), merge...)
				if code != 405 && code != 404 {
					c.T.Errorf("%s %s: %d %v", method, prefix+of, code, answer)
				}
			}
		}
	}
	if code, answer, _ := c.call("GET", path+"/proxy"+objects+"/a", nil); code != 405 {
		c.T.Errorf("GET by a proxy: %d %v", code, answer)
	}
	for _, of := range []string{objects, objects + "/a", "/widgets"} {
		if _, answer, _ := c.call("GET", path+"/watch"+of+"?timeoutSeconds=1", nil); answer["type"] != "ADDED" {
			c.T.Errorf("GET %s: %v", of, answer)
		}
	}
	// kube-apiserver's answers to verbs that a custom resource does not have.
	for _, of := range []struct {
		code                 int
		method, path, reason string
	}{
		{200, "HEAD", objects, ""}, {200, "HEAD", objects + "/a", ""},
		{400, "PUT", objects, "BadRequest"}, {400, "PATCH", objects, "BadRequest"},
		{404, "GET", objects + "/a/none", "NotFound"}, {404, "GET", "/widgets/a", ""}, {404, "POST", "/widgets", ""},
	} {
		code, answer, _ := c.call(of.method, path+of.path, nil, merge...)
		if reason, _ := answer["reason"].(string); code != of.code || reason != of.reason {
			c.T.Errorf("%s %s: %d %v", of.method, of.path, code, answer)
		}
	}
	if list := c.want(200, "GET", path+objects, nil); list["metadata"].(map[string]any)["continue"] != "" {
		c.T.Errorf("the last page does not say so: %v", list["metadata"])
	}
	if left := c.want(200, "GET", path+objects+"/a", nil); left["spec"].(map[string]any)["color"] != "red" {
		c.T.Errorf("changed: %v", left)
	}
}

// many: reads and writes continue while a definition is created, changed and
// deleted.
func (c *custom) many() {
	const group, path = "many.test", "/apis/many.test/v1/namespaces/default/widgets"
	c.define(widgets(group))
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				code, answer, _ := c.call("POST", path, widget(group+"/v1", fmt.Sprintf("w%d-%d", writer, i), `{}`))
				if code != 201 && code != 403 && code != 404 && code != 429 {
					c.T.Errorf("a writer was answered %d %v", code, answer["message"])
					return
				}
			}
		})
	}
	for i := range 10 {
		c.want(200, "PATCH", definitionsPath+"/widgets."+group, fmt.Sprintf(`{"spec":{"names":{"shortNames":["w%d"]}}}`, i), merge...)
	}
	c.want(200, "DELETE", definitionsPath+"/widgets."+group, nil)
	c.Until("the definition no longer exists", func(context.Context) bool {
		code, _, _ := c.call("GET", definitionsPath+"/widgets."+group, nil)
		return code == 404
	})
	close(stop)
	writers.Wait()
	left, _, _, err := c.Server.Storage().List(c.T.Context(), "/registry/"+group+"/", "", 0, 0)
	if err != nil || len(left) > 0 {
		c.T.Errorf("%d objects are left without a definition, %v", len(left), err)
	}
}

// events is an open watch.
type events struct {
	t      *testing.T
	body   *http.Response
	reader *bufio.Reader
}

type event struct {
	Type   string
	Object map[string]any
}

func (c *custom) watch(path string) *events {
	c.T.Helper()
	request, err := http.NewRequestWithContext(c.T.Context(), http.MethodGet, c.Address+path, nil)
	c.Must(err)
	answer, err := c.Root().HTTP().Do(request)
	c.Must(err)
	return &events{c.T, answer, bufio.NewReader(answer.Body)}
}

func (e *events) Close() { _ = e.body.Body.Close() }

// next is the next event, or nil if the watch has ended.
func (e *events) next() *event {
	line, err := e.reader.ReadBytes('\n')
	if err != nil {
		return nil
	}
	out := &event{}
	if err := json.Unmarshal(line, out); err != nil {
		e.t.Fatal(err)
	}
	return out
}
