package condition

import (
	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
)

// The names of types, which users see in compiler messages.
const (
	requestType   = "kubernetes.AdmissionRequest"
	namespaceType = "kubernetes.Namespace"
	variablesType = "kubernetes.variables"
)

func object(name string, fields map[string]*apiservercel.DeclType) *apiservercel.DeclType {
	declared := make(map[string]*apiservercel.DeclField, len(fields))
	for field, t := range fields {
		declared[field] = apiservercel.NewDeclField(field, t, false, nil, nil)
	}
	return apiservercel.NewObjectType(name, declared)
}

func words(names ...string) map[string]*apiservercel.DeclType {
	fields := make(map[string]*apiservercel.DeclType, len(names))
	for _, name := range names {
		fields[name] = apiservercel.StringType
	}
	return fields
}

var (
	texts  = apiservercel.NewListType(apiservercel.StringType, -1)
	labels = apiservercel.NewMapType(apiservercel.StringType, apiservercel.StringType, -1)
)

// declareRequest is the admission request without its objects.
func declareRequest() *apiservercel.DeclType {
	kind := object("kubernetes.GroupVersionKind", words("group", "version", "kind"))
	resource := object("kubernetes.GroupVersionResource", words("group", "version", "resource"))
	user := words("username", "uid")
	user["groups"] = texts
	user["extra"] = apiservercel.NewMapType(apiservercel.StringType, texts, -1)
	fields := words("subResource", "requestSubResource", "name", "namespace", "operation")
	fields["kind"], fields["requestKind"] = kind, kind
	fields["resource"], fields["requestResource"] = resource, resource
	fields["userInfo"] = object("kubernetes.UserInfo", user)
	fields["dryRun"] = apiservercel.BoolType
	fields["options"] = apiservercel.DynType
	return object(requestType, fields)
}

// declareNamespace is the part of a namespace that expressions may see. "UID"
// is spelt as in upstream, where it finds nothing either.
func declareNamespace() *apiservercel.DeclType {
	metadata := words("name", "generateName", "namespace", "UID", "resourceVersion")
	metadata["labels"], metadata["annotations"] = labels, labels
	metadata["finalizers"] = texts
	metadata["creationTimestamp"], metadata["deletionTimestamp"] = apiservercel.TimestampType, apiservercel.TimestampType
	metadata["generation"], metadata["deletionGracePeriodSeconds"] = apiservercel.IntType, apiservercel.IntType
	condition := words("type", "status", "reason", "message")
	condition["lastTransitionTime"] = apiservercel.TimestampType
	status := words("phase")
	status["conditions"] = apiservercel.NewListType(object("kubernetes.NamespaceCondition", condition), -1)
	return object(namespaceType, map[string]*apiservercel.DeclType{
		"metadata": object("kubernetes.NamespaceMetadata", metadata),
		"spec":     object("kubernetes.NamespaceSpec", map[string]*apiservercel.DeclType{"finalizers": texts}),
		"status":   object("kubernetes.NamespaceStatus", status),
	})
}

// variable adds the type of a compiled variable to the declared ones.
func variable(t *cel.Type) *apiservercel.DeclType {
	return apiservercel.NewSimpleTypeWithMinSize(t.String(), t, nil, 0)
}
