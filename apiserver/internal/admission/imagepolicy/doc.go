// Package imagepolicy asks an external service whether the images of a pod may
// be run, with an ImageReview, and caches the answers for a while. It is off by
// default (Kubernetes docs, "ImagePolicyWebhook").
package imagepolicy
