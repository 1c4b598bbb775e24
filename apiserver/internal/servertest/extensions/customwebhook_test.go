package extensions

import "reflect"

// webhook: unknown fields that a webhook adds are dropped, and fields that it
// removes are defaulted again, on create and on update.
func (c *custom) webhook() {
	const group, path = "hooked.test", "/apis/hooked.test/v1/namespaces/default/widgets"
	c.define(widgets(group))
	h := serveHooks(c.T)
	h.on("custom", patches(`[{"op":"add","path":"/spec/odd","value":1},{"op":"replace","path":"/spec/color","value":"blue"},{"op":"remove","path":"/spec/size"}]`))
	c.register(h, true, h.webhook("custom"))
	want := map[string]any{"color": "blue", "size": 3.0}
	text := `{"apiVersion":"hooked.test/v1","kind":"Widget","metadata":{"name":"a","labels":{"hook":"custom"}},"spec":{"color":"red"}}`
	if made := c.want(201, "POST", path, text); !reflect.DeepEqual(made["spec"], want) {
		c.T.Errorf("created as %v, want %v", made["spec"], want)
	}
	if made := c.want(200, "PATCH", path+"/a", `{"spec":{"color":"green"}}`, merge...); !reflect.DeepEqual(made["spec"], want) {
		c.T.Errorf("changed into %v, want %v", made["spec"], want)
	}
}
