package request

import (
	"net/http/httptest"
	"testing"
)

func TestParse(t *testing.T) {
	type want struct {
		resource                                           bool
		verb, group, version, namespace, name, kind, place string
	}
	tests := map[string]want{
		"GET /":                         {verb: "get"},
		"GET /api":                      {verb: "get"},
		"GET /api/v1":                   {verb: "get"},
		"GET /apis/apps/v1":             {verb: "get"},
		"POST /healthz":                 {verb: "post"},
		"GET /debug/relay/x/y/z":        {verb: "get"},
		"GET /api/v1/pods":              {resource: true, verb: "list", version: "v1", kind: "pods"},
		"GET /api/v1/pods?watch=true":   {resource: true, verb: "watch", version: "v1", kind: "pods"},
		"GET /api/v1/pods?watch=1":      {resource: true, verb: "watch", version: "v1", kind: "pods"},
		"GET /api/v1/pods?watch=False":  {resource: true, verb: "list", version: "v1", kind: "pods"},
		"GET /api/v1/pods?watch=0":      {resource: true, verb: "list", version: "v1", kind: "pods"},
		"GET /api/v1/watch/pods":        {resource: true, verb: "watch", version: "v1", kind: "pods"},
		"GET /api/v1/watch":             {verb: "get", version: "v1"},
		"GET /api/v1/nodes/n1":          {resource: true, verb: "get", version: "v1", kind: "nodes", name: "n1"},
		"HEAD /api/v1/nodes/n1":         {resource: true, verb: "get", version: "v1", kind: "nodes", name: "n1"},
		"PATCH /api/v1/nodes/n1/status": {resource: true, verb: "patch", version: "v1", kind: "nodes", name: "n1", place: "status"},
		"GET /api/v1/namespaces":        {resource: true, verb: "list", version: "v1", kind: "namespaces"},
		"GET /api/v1/namespaces/a":      {resource: true, verb: "get", version: "v1", namespace: "a", name: "a", kind: "namespaces"},
		"PUT /api/v1/namespaces/a/finalize": {
			resource: true, verb: "update", version: "v1", namespace: "a", name: "a", kind: "namespaces", place: "finalize",
		},
		"GET /api/v1/namespaces/a/pods": {resource: true, verb: "list", version: "v1", namespace: "a", kind: "pods"},
		"POST /api/v1/namespaces/a/pods/p/binding": {
			resource: true, verb: "create", version: "v1", namespace: "a", name: "p", kind: "pods", place: "binding",
		},
		"DELETE /api/v1/namespaces/a/pods":   {resource: true, verb: "deletecollection", version: "v1", namespace: "a", kind: "pods"},
		"DELETE /api/v1/namespaces/a/pods/p": {resource: true, verb: "delete", version: "v1", namespace: "a", name: "p", kind: "pods"},
		"PUT /apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1": {
			resource: true, verb: "update", group: "coordination.k8s.io", version: "v1", namespace: "kube-node-lease", name: "n1", kind: "leases",
		},
		"GET /api/v1/namespaces/a/secrets?watch=1&fieldSelector=metadata.name%3Dkey": {
			resource: true, verb: "watch", version: "v1", namespace: "a", name: "key", kind: "secrets",
		},
		"GET /api/v1/namespaces/a/secrets?fieldSelector=metadata.name!%3Dkey": {
			resource: true, verb: "list", version: "v1", namespace: "a", kind: "secrets",
		},
		"DELETE /api/v1/namespaces/a/secrets?fieldSelector=metadata.name%3Dkey": {
			resource: true, verb: "deletecollection", version: "v1", namespace: "a", kind: "secrets",
		},
		"GET /api/v1/watch/namespaces/a/secrets?fieldSelector=metadata.name%3Dkey": {
			resource: true, verb: "watch", version: "v1", namespace: "a", kind: "secrets",
		},
		"GET /api/v1/secrets?fieldSelector=metadata.name%3D..": {resource: true, verb: "list", version: "v1", kind: "secrets"},
		"GET /api/v1/namespaces/a/pods/p/log?follow=true": {
			resource: true, verb: "get", version: "v1", namespace: "a", name: "p", kind: "pods", place: "log",
		},
	}
	for line, w := range tests {
		t.Run(line, func(t *testing.T) {
			method, target := line[:indexSpace(line)], line[indexSpace(line)+1:]
			i := Parse(httptest.NewRequest(method, target, nil))
			got := want{i.Resource, i.Verb, i.APIGroup, i.APIVersion, i.Namespace, i.Name, i.ResourceName, i.Subresource}
			if got != w {
				t.Errorf("\n got %+v\nwant %+v", got, w)
			}
		})
	}
}

func indexSpace(s string) int {
	for i := range s {
		if s[i] == ' ' {
			return i
		}
	}
	return -1
}

func TestLongRunning(t *testing.T) {
	for target, want := range map[string]bool{
		"/api/v1/pods?watch=1":                  true,
		"/api/v1/pods":                          false,
		"/api/v1/namespaces/a/pods/p/log":       true,
		"/api/v1/namespaces/a/pods/p/exec":      true,
		"/api/v1/namespaces/a/pods/p/status":    false,
		"/api/v1/nodes/n/proxy":                 true,
		"/api/v1/namespaces/a/pods/portforward": false, // a pod with that name
	} {
		if got := Parse(httptest.NewRequest("GET", target, nil)).LongRunning(); got != want {
			t.Errorf("%s: %v", target, got)
		}
	}
}

// The label selector of a request for a collection is kept as it is.
func TestLabelSelector(t *testing.T) {
	for line, want := range map[string]string{
		"GET /api/v1/pods?labelSelector=a%3Db":                  "a=b",
		"GET /api/v1/pods?labelSelector=%3D%3D":                 "==",
		"GET /api/v1/pods?watch=1&labelSelector=a":              "a",
		"DELETE /api/v1/namespaces/n/pods?labelSelector=a":      "a",
		"DELETE /api/v1/namespaces/n/pods/web?labelSelector=a":  "",
		"GET /api/v1/namespaces/n/pods/web/log?labelSelector=a": "",
	} {
		at := indexSpace(line)
		if got := Parse(httptest.NewRequest(line[:at], line[at+1:], nil)).LabelSelector; got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
