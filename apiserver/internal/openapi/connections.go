package openapi

import (
	"cmp"
	"net/http"
	"reflect"
	"slices"
	"strings"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/scheme"
)

// logOptions are a log's options.
var logOptions = runtimeschema.GroupVersionKind{Version: "v1", Kind: "PodLogOptions"}

// addLog adds the path of a log, which is a read and not a connection.
func (b *builder) addLog(path, name string) {
	b.group.pathParameters[path] = sortParameters(append(b.group.pathParameters[path], optionParameters(logOptions)...))
	b.add(path, operation{
		method: http.MethodGet, action: "get", id: b.operationID("read", name), description: "read log of the specified " + b.info.Kind,
		produces: append([]string{"text/plain"}, objectTypes...), answer: &schema{kind: "string"}, codes: []int{http.StatusOK},
	})
}

// addConnects adds the paths of subresources that answer requests themselves. Their
// query parameters are the fields of their kind; proxies also pass on the rest
// of the path.
func (b *builder) addConnects(path string, sub registry.Subresource) {
	b.addConnection(path, sub, "", b.connectionParameters(sub))
	if sub.Name == "proxy" {
		b.addConnection(path+"/{path}", sub, "WithPath", append(b.connectionParameters(sub),
			parameter{name: "path", in: "path", kind: "string", required: true, description: "path to the resource"}))
	}
}

func (b *builder) addConnection(path string, sub registry.Subresource, suffix string, parameters []parameter) {
	b.group.pathParameters[path] = sortParameters(parameters)
	for method := range sub.Connect {
		b.add(path, operation{
			method: method, action: "connect", id: b.operationID("connect "+title(strings.ToLower(method)), sub.Name) + suffix, kind: sub.Kind,
			description: "connect " + method + " requests to " + sub.Name + " of " + b.info.Kind,
			produces:    []string{"*/*"}, answer: &schema{kind: "string"}, codes: []int{http.StatusOK},
		})
	}
}

func (b *builder) connectionParameters(sub registry.Subresource) []parameter {
	out := append(optionParameters(sub.Kind), parameter{
		name: "name", in: "path", kind: "string", required: true, description: "name of the " + sub.Kind.Kind,
	})
	if b.info.Namespaced {
		out = append(out, namespaceParameter)
	}
	return out
}

// sortParameters are parameters in upstream's order.
func sortParameters(parameters []parameter) []parameter {
	slices.SortFunc(parameters, func(a, b parameter) int { return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.in, b.in)) })
	return parameters
}

// optionParameters are the fields of an options kind as query parameters.
// Fields other than strings, numbers and booleans are left out, as in upstream.
func optionParameters(kind runtimeschema.GroupVersionKind) (out []parameter) {
	options, err := scheme.Scheme.New(kind)
	if err != nil { // without a kind there are no options
		return nil
	}
	described, ok := options.(documented)
	if !ok {
		return nil
	}
	fields := reflect.TypeOf(options).Elem()
	for i := range fields.NumField() {
		field := fields.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if kind := queryKind(field.Type); kind != "" && name != "" {
			out = append(out, queryParameter(described, name, kind))
		}
	}
	return out
}

func queryKind(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int32, reflect.Int64:
		return "integer"
	}
	return ""
}
