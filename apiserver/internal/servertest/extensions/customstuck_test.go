package extensions

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// hangingEnd deletes a definition whose objects wait for a conversion webhook that does not
// answer until it is released, or the test ends.
func (c *custom) hangingEnd(group string) (definition string, release func()) {
	definition = definitionsPath + "/widgets." + group
	var holds, held atomic.Bool
	released := make(chan struct{})
	c.define(widgets(group, c.converting(func([]*unstructured.Unstructured) {
		if holds.Load() {
			held.Store(true)
			<-released
		}
	})))
	free := context.AfterFunc(c.T.Context(), func() { close(released) })
	c.want(201, "POST", "/apis/"+group+"/v1/namespaces/default/widgets", widget(group+"/v1", "a", `{}`))
	c.want(200, "PATCH", definition,
		`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
		"Content-Type", "application/json-patch+json")
	holds.Store(true)
	c.want(200, "DELETE", definition, nil)
	c.Until("the webhook is asked", func(context.Context) bool { return held.Load() })
	return definition, func() {
		if free() {
			close(released)
		}
	}
}

// stuck: while the objects of a deleted definition wait for a conversion webhook that
// does not answer, other definitions are established.
func (c *custom) stuck() {
	definition, release := c.hangingEnd("stuck.test")
	c.define(widgets("free.test"))
	if status := fmt.Sprint(c.want(200, "GET", definition, nil)["status"]); strings.Contains(status, "InstanceDeletionFailed") {
		c.T.Errorf("another definition was established after the webhook had failed: %s", status)
	}
	release()
	c.Until("the definition no longer exists", func(context.Context) bool {
		code, _, _ := c.call("GET", definition, nil)
		return code == 404
	})
}

// replaced: somebody releases a definition whose objects wait for a conversion webhook, and
// makes another one of its name. Nothing of the old one's end is done to that.
func (c *custom) replaced() {
	const group = "replaced.test"
	const objects = "/apis/" + group + "/v1/namespaces/default/widgets"
	definition, release := c.hangingEnd(group)
	c.want(200, "PATCH", definition, `[{"op":"remove","path":"/metadata/finalizers"}]`, "Content-Type", "application/json-patch+json")
	c.define(widgets(group))
	release()
	c.want(201, "POST", objects, widget(group+"/v1", "b", `{}`))
	c.define(widgets("after." + group)) // by when the end of the old one has ended
	now := c.want(200, "GET", definition, nil)
	if text := fmt.Sprint(now); strings.Contains(text, "Terminating") || strings.Contains(text, "deletionTimestamp") {
		c.T.Errorf("the new definition: %s", text)
	}
	c.want(200, "GET", objects+"/b", nil)
}

// unconverted: an object that can't be converted to the version in which it is to be stored can still be
// deleted by who takes the risk, and the answer says that it is gone.
func (c *custom) unconverted() {
	const group, old, stored = "unconverted.test", "/apis/unconverted.test/v1/namespaces/default/widgets",
		"/apis/unconverted.test/v2beta1/namespaces/default/widgets"
	var fails atomic.Bool
	c.define(widgets(group, c.converting(func(all []*unstructured.Unstructured) {
		for _, o := range all {
			if fails.Load() {
				o.SetKind("Other")
			}
		}
	})))
	c.want(201, "POST", old, widget(group+"/v1", "a", `{}`))
	c.want(200, "PATCH", definitionsPath+"/widgets."+group,
		`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`,
		"Content-Type", "application/json-patch+json")
	fails.Store(true)
	c.Until("the new version is the stored one", func(context.Context) bool {
		code, _, _ := c.call("GET", stored+"/a", nil)
		return code == 500
	})
	if got := c.want(500, "DELETE", stored, nil)["message"]; strings.Count(fmt.Sprint(got), "Internal error occurred") != 1 {
		c.T.Errorf("all are deleted: %v", got)
	}
	if got := c.want(200, "DELETE", stored+"/a?ignoreStoreReadErrorWithClusterBreakingPotential=true", nil); got["status"] != "Success" {
		c.T.Errorf("one is deleted: %v", got)
	}
	c.want(404, "DELETE", stored+"/a", nil)
}
