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

// query is a query parameter, which is described by the options it belongs to.
func query(options documented, name, kind string) parameter {
	return parameter{name: name, in: "query", kind: kind, description: options.SwaggerDoc()[name]}
}

var (
	lists, patches, deletes = metav1.ListOptions{}, metav1.PatchOptions{}, metav1.DeleteOptions{}

	pretty          = parameter{name: "pretty", in: "query", kind: "string", description: prettyText}
	dryRun          = query(patches, "dryRun", "string")
	fieldManager    = query(patches, "fieldManager", "string")
	fieldValidation = query(patches, "fieldValidation", "string")
	force           = query(patches, "force", "boolean")

	writeParameters  = []parameter{dryRun, fieldManager, fieldValidation}
	patchParameters  = []parameter{dryRun, fieldManager, fieldValidation, force}
	deleteParameters = []parameter{
		dryRun, query(deletes, "gracePeriodSeconds", "integer"), query(deletes, "ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
		query(deletes, "orphanDependents", "boolean"), query(deletes, "propagationPolicy", "string"),
	}
	// selectParameters select what of a collection is deleted, listParameters what
	// is listed or watched.
	selectParameters = []parameter{
		query(lists, "continue", "string"), query(lists, "fieldSelector", "string"), query(lists, "labelSelector", "string"),
		query(lists, "limit", "integer"), query(lists, "resourceVersion", "string"), query(lists, "resourceVersionMatch", "string"),
		query(lists, "sendInitialEvents", "boolean"), query(lists, "timeoutSeconds", "integer"),
	}
	listParameters = byName(query(lists, "allowWatchBookmarks", "boolean"), query(lists, "watch", "boolean"))

	namespaceParameter = parameter{name: "namespace", in: "path", kind: "string", required: true, description: "object name and auth scope, such as for teams and projects"}

	objectTypes = []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf"}
	listTypes   = append(append([]string{}, objectTypes...), "application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
	patchTypes  = []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
)

const prettyText = "If 'true', then the output is pretty printed. Defaults to 'false' unless the user-agent indicates a browser or command-line HTTP tool (curl and wget)."

// byName are selectParameters and more, ordered by name.
func byName(more ...parameter) []parameter {
	all := append(slices.Clone(selectParameters), more...)
	slices.SortFunc(all, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	return all
}

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
	b.watches()
}

// describeCreated adds the path of a resource that can only be created: its
// objects are reviews or commands, and never stored.
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
	// listed is the name of the list's definition; jsonOnly: the objects have no
	// protobuf form. Both are for custom resources.
	listed   string
	jsonOnly bool
}

func (b *builder) path(namespaced bool, parts ...string) string {
	namespace := ""
	if namespaced && b.info.Namespaced {
		namespace = "{namespace}"
	}
	path := strings.Join(append([]string{b.info.Path(namespace, "")}, parts...), "/")
	var parameters []parameter
	if len(parts) > 0 {
		parameters = append(parameters, parameter{name: "name", in: "path", kind: "string", required: true, description: "name of the " + b.described().Kind})
	}
	if namespace != "" {
		parameters = append(parameters, namespaceParameter)
	}
	b.group.pathParameters[path] = append(parameters, pretty)
	return path
}

// verbs are the verbs that resources declare, by action.
var verbs = map[string]string{"post": "create", "put": "update", "watchlist": "watch"}

func (b *builder) add(path string, op operation) {
	verb := op.action
	if other, ok := verbs[verb]; ok {
		verb = other
	}
	if verb != "connect" && !b.info.Serves(verb) {
		return
	}
	if op.kind.Empty() {
		op.kind = b.described()
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

// id is the operation's name in upstream's form: readCoreV1NamespacedPodStatus.
// verb may have a part that follows the group and version: "connect Get".
func (b *builder) id(verb string, namespaced bool, subresource string) string {
	verb, more, _ := strings.Cut(verb, " ")
	name := verb + title(groupName(b.info.Group)) + title(b.info.Version) + more
	if namespaced && b.info.Namespaced {
		name += "Namespaced"
	}
	return name + b.info.Kind + title(subresource)
}

// described is the kind of what is sent and answered.
func (b *builder) described() runtimeschema.GroupVersionKind {
	if b.kind.Empty() {
		return b.info.GVK()
	}
	return b.kind
}

// groupName is a group's name as one word: "rbacAuthorization".
func groupName(group string) string {
	if group == "" {
		return "core"
	}
	first, rest, _ := strings.Cut(strings.TrimSuffix(group, ".k8s.io"), ".")
	for part := range strings.SplitSeq(rest, ".") {
		first += title(part)
	}
	return first
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
	list, reads := &schema{ref: b.list()}, "list"
	if b.info.Serves("watch") {
		reads = "list or watch"
	}
	lists := operation{
		method: http.MethodGet, action: "list", id: b.id("list", true, ""), description: reads + " objects of kind " + kind,
		parameters: listParameters, produces: listTypes, answer: list, codes: []int{http.StatusOK},
	}
	b.add(path, lists)
	b.add(path, operation{
		method: http.MethodDelete, action: "deletecollection", id: b.id("delete Collection", true, ""), description: "delete collection of " + kind,
		parameters: byName(deleteParameters...),
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
		parameters: writeParameters, body: b.object, answer: b.object,
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

// single is the path of one object, or of a part of it that is read and written
// like the object.
func (b *builder) single(subresource string, whole bool) {
	parts := []string{"{name}"}
	if subresource != "" {
		parts = append(parts, subresource)
	}
	path, of := b.path(true, parts...), "the specified "+b.info.Kind
	if subresource != "" {
		of = subresource + " of " + of
	}
	if verbs := registry.PartVerbs(subresource); len(verbs) == 1 {
		part := *b
		part.info.Verbs = verbs
		b = &part
	}
	b.add(path, operation{
		method: http.MethodGet, action: "get", id: b.id("read", true, subresource), description: "read " + of,
		answer: b.object, codes: []int{http.StatusOK},
	})
	b.add(path, operation{
		method: http.MethodPut, action: "put", id: b.id("replace", true, subresource), description: "replace " + of,
		parameters: writeParameters, body: b.object, answer: b.object,
		codes: []int{http.StatusOK, http.StatusCreated},
	})
	patch := &schema{ref: b.definitions.add(reflect.TypeFor[metav1.Patch]())}
	b.add(path, operation{
		method: http.MethodPatch, action: "patch", id: b.id("patch", true, subresource), description: "partially update " + of,
		parameters: patchParameters, consumes: patchTypes, body: patch, answer: b.object,
		codes: []int{http.StatusOK, http.StatusCreated},
	})
	if whole {
		answer := b.status()
		if b.info.AnswersDeleted {
			answer = b.object
		}
		b.add(path, operation{
			method: http.MethodDelete, action: "delete", id: b.id("delete", true, ""), description: "delete a " + b.info.Kind,
			parameters: deleteParameters, body: b.deleteOptions(), answer: answer,
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
			parameters:  writeParameters, body: object, answer: object,
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
	switch {
	case sub.Name == "log":
		b.readLog(path, sub.Name)
	case len(sub.Connect) > 0:
		b.connects(path, sub)
	}
}
