package openapi

import (
	"net/http"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"kctl/apiserver/internal/registry"
	"kctl/apiserver/internal/scheme"
	"kctl/proto/core"
)

// operation is one method on one path.
type operation struct {
	method, id, description, action string
	kind                            runtimeschema.GroupVersionKind
	parameters                      []parameter
	consumes, produces              []string
	body, answer                    *schema
	codes                           []int
}

type parameter struct {
	name, in, kind, description string
	required                    bool
}

// group is what one group and version has.
type group struct {
	version runtimeschema.GroupVersion
	// paths are operations by path; pathParameters stand for all of a path's.
	paths          map[string][]operation
	pathParameters map[string][]parameter
}

func query(name, kind, description string) parameter {
	return parameter{name: name, in: "query", kind: kind, description: description}
}

var (
	pretty          = query("pretty", "string", "If 'true', then the output is pretty printed.")
	dryRun          = query("dryRun", "string", "When present, indicates that modifications should not be persisted. Valid values are: All")
	fieldManager    = query("fieldManager", "string", "The name of the actor that is making these changes.")
	fieldValidation = query("fieldValidation", "string", "What to do with unknown or duplicate fields: Ignore, Warn or Strict.")
	grace           = query("gracePeriodSeconds", "integer", "The duration in seconds before the object should be deleted.")
	orphan          = query("orphanDependents", "boolean", "Deprecated: use propagationPolicy.")
	propagation     = query("propagationPolicy", "string", "Whether and how garbage collection will be performed: Orphan, Background or Foreground.")

	listParameters = []parameter{
		query("allowWatchBookmarks", "boolean", "Ask for watch events of type BOOKMARK."),
		query("continue", "string", "Where the list goes on: the token that the page before ended with."),
		query("fieldSelector", "string", "Restricts the objects by their fields."),
		query("labelSelector", "string", "Restricts the objects by their labels."),
		query("limit", "integer", "How many objects a page has at most."),
		query("resourceVersion", "string", "Constrains which state of the collection may be served."),
		query("resourceVersionMatch", "string", "How resourceVersion is applied to a list: Exact or NotOlderThan."),
		query("sendInitialEvents", "boolean", "Begin a watch with the objects that exist."),
		query("timeoutSeconds", "integer", "Ends the call after this time, whatever comes."),
		query("watch", "boolean", "Watch for changes instead of listing."),
	}

	nameParameter      = parameter{name: "name", in: "path", kind: "string", required: true, description: "name of the object"}
	namespaceParameter = parameter{name: "namespace", in: "path", kind: "string", required: true, description: "object name and auth scope, such as for teams and projects"}

	objectTypes = []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
	listTypes   = append(append([]string{}, objectTypes...), "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
	patchTypes  = []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json"}
)

// describe adds an entry's paths to its group.
func (g *group) describe(e registry.Served, d definitions) {
	info := e.Resource.Info()
	object := &schema{ref: d.add(reflect.TypeOf(e.Resource.New()).Elem())}
	d.mark(object.ref, info.GVK())
	b := builder{group: g, info: info, definitions: d, object: object}
	b.collection()
	b.single("", true)
	if info.HasStatus {
		b.single("status", false)
	}
	for _, part := range info.Parts {
		b.single(part, false)
	}
	for _, sub := range e.Subresources {
		b.subresource(sub)
	}
}

// describeCreated adds the path of a resource that can only be created: its
// objects are questions, or orders, and never stored.
func (g *group) describeCreated(resource core.Resource, obj any, d definitions) {
	object := &schema{ref: d.add(reflect.TypeOf(obj).Elem())}
	d.mark(object.ref, resource.GVK())
	b := builder{group: g, info: registry.Info{Resource: resource}, definitions: d, object: object}
	b.creates(b.path(true))
}

type builder struct {
	group       *group
	info        registry.Info
	definitions definitions
	object      *schema
	kind        runtimeschema.GroupVersionKind // of object, where that is not the resource's
	// listed is the name of the list's definition; jsonOnly that there is no
	// protobuf of the objects. Both are for custom resources.
	listed   string
	jsonOnly bool
}

func (b *builder) path(namespaced bool, parts ...string) string {
	namespace := ""
	if namespaced && b.info.Namespaced {
		namespace = "{namespace}"
	}
	path := strings.Join(append([]string{b.info.Path(namespace, "")}, parts...), "/")
	parameters := []parameter{pretty}
	if len(parts) > 0 {
		parameters = append(parameters, nameParameter)
	}
	if namespace != "" {
		parameters = append(parameters, namespaceParameter)
	}
	b.group.pathParameters[path] = parameters
	return path
}

// verbs are those by which resources say what they serve, by action.
var verbs = map[string]string{"post": "create", "put": "update"}

func (b *builder) add(path string, op operation) {
	verb := op.action
	if other, ok := verbs[verb]; ok {
		verb = other
	}
	if verb != "connect" && !b.info.Serves(verb) {
		return
	}
	if op.kind.Empty() {
		op.kind = b.kind
	}
	if op.kind.Empty() {
		op.kind = b.info.GVK()
	}
	if op.consumes == nil {
		op.consumes = []string{"*/*"}
	}
	if op.produces == nil {
		op.produces = objectTypes
	}
	if b.jsonOnly {
		op.produces, op.consumes = withoutProtobuf(op.produces), withoutStrategic(op.consumes)
	}
	b.group.paths[path] = append(b.group.paths[path], op)
}

func withoutProtobuf(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return strings.Contains(t, "protobuf") })
}

func withoutStrategic(types []string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(t string) bool { return strings.Contains(t, "strategic") })
}

// id is upstream's way to name operations: readCoreV1NamespacedPodStatus.
func (b *builder) id(verb string, namespaced bool, subresource string) string {
	group, _, _ := strings.Cut(b.info.Group, ".")
	if group == "" {
		group = "core"
	}
	name := verb + title(group) + title(b.info.Version)
	if namespaced && b.info.Namespaced {
		name += "Namespaced"
	}
	return name + b.info.Kind + title(subresource)
}

func title(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// collection is the path that lists and creates; namespaced resources also
// list on one without the namespace.
func (b *builder) collection() {
	path, kind := b.path(true), b.info.Kind
	b.creates(path)
	list := &schema{ref: b.list()}
	lists := operation{
		method: http.MethodGet, action: "list", id: b.id("list", true, ""), description: "list or watch objects of kind " + kind,
		parameters: listParameters, produces: listTypes, answer: list, codes: []int{http.StatusOK},
	}
	b.add(path, lists)
	b.add(path, operation{
		method: http.MethodDelete, action: "deletecollection", id: b.id("delete", true, "") + "Collection", description: "delete collection of " + kind,
		parameters: append([]parameter{dryRun, grace, orphan, propagation}, listParameters...),
		body:       b.deleteOptions(), answer: b.status(), codes: []int{http.StatusOK},
	})
	if b.info.Namespaced {
		lists.id = b.id("list", false, "") + "ForAllNamespaces"
		b.add(b.path(false), lists)
	}
}

func (b *builder) creates(path string) {
	b.add(path, operation{
		method: http.MethodPost, action: "post", id: b.id("create", true, ""), description: "create a " + b.info.Kind,
		parameters: []parameter{dryRun, fieldManager, fieldValidation}, body: b.object, answer: b.object,
		codes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted},
	})
}

func (b *builder) list() string {
	if b.listed != "" {
		return b.listed
	}
	kind := b.info.GVK()
	kind.Kind += "List"
	list, err := scheme.Scheme.New(kind)
	if err != nil { // every kind that is served has a list
		panic("openapi: " + err.Error())
	}
	name := b.definitions.add(reflect.TypeOf(list).Elem())
	b.definitions.mark(name, kind)
	return name
}

func (b *builder) deleteOptions() *schema {
	name := b.definitions.add(reflect.TypeFor[metav1.DeleteOptions]())
	b.definitions.mark(name, b.group.version.WithKind("DeleteOptions"))
	return &schema{ref: name}
}

func (b *builder) status() *schema {
	name := b.definitions.add(reflect.TypeFor[metav1.Status]())
	b.definitions.mark(name, runtimeschema.GroupVersionKind{Version: "v1", Kind: "Status"})
	return &schema{ref: name}
}

// single is the path of one object, or of a part of it that is read and
// written as the object is.
func (b *builder) single(subresource string, deletes bool) {
	parts := []string{"{name}"}
	if subresource != "" {
		parts = append(parts, subresource)
	}
	path, of := b.path(true, parts...), subresource+" of the specified "+b.info.Kind
	b.add(path, operation{
		method: http.MethodGet, action: "get", id: b.id("read", true, subresource), description: "read " + of,
		answer: b.object, codes: []int{http.StatusOK},
	})
	b.add(path, operation{
		method: http.MethodPut, action: "put", id: b.id("replace", true, subresource), description: "replace " + of,
		parameters: []parameter{dryRun, fieldManager, fieldValidation}, body: b.object, answer: b.object,
		codes: []int{http.StatusOK, http.StatusCreated},
	})
	patch := &schema{ref: b.definitions.add(reflect.TypeFor[metav1.Patch]())}
	b.add(path, operation{
		method: http.MethodPatch, action: "patch", id: b.id("patch", true, subresource), description: "partially update " + of,
		parameters: []parameter{dryRun, fieldManager, fieldValidation}, consumes: patchTypes, body: patch, answer: b.object,
		codes: []int{http.StatusOK, http.StatusCreated},
	})
	if deletes {
		b.add(path, operation{
			method: http.MethodDelete, action: "delete", id: b.id("delete", true, ""), description: "delete a " + b.info.Kind,
			parameters: []parameter{dryRun, grace, orphan, propagation}, body: b.deleteOptions(), answer: b.status(),
			codes: []int{http.StatusOK, http.StatusAccepted},
		})
	}
}

// subresource is the path of one that has a handler of its own.
func (b *builder) subresource(sub registry.Subresource) {
	path := b.path(true, "{name}", sub.Name)
	if sub.Create != nil && sub.New != nil {
		object := &schema{ref: b.definitions.add(reflect.TypeOf(sub.New()).Elem())}
		b.definitions.mark(object.ref, sub.Kind)
		b.add(path, operation{
			method: http.MethodPost, action: "post", id: b.id("create", true, sub.Name), kind: sub.Kind,
			description: "create " + sub.Name + " of a " + b.info.Kind,
			parameters:  []parameter{dryRun, fieldManager, fieldValidation}, body: object, answer: object,
			codes: []int{http.StatusOK, http.StatusCreated, http.StatusAccepted},
		})
	}
	if sub.Object != nil {
		part := *b
		part.object = &schema{ref: b.definitions.add(reflect.TypeOf(sub.Object.New()).Elem())}
		b.definitions.mark(part.object.ref, sub.Kind)
		part.kind = sub.Kind
		part.single(sub.Name, false)
	}
	for method := range sub.Connect {
		b.add(path, operation{
			method: method, action: "connect", id: b.id("connect"+title(strings.ToLower(method)), true, sub.Name), kind: sub.Kind,
			description: "connect " + method + " requests to " + sub.Name + " of " + b.info.Kind,
			produces:    []string{"*/*"}, answer: &schema{kind: "string"}, codes: []int{http.StatusOK},
		})
	}
}
