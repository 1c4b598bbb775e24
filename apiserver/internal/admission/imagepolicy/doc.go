// Package imagepolicy asks a service outside the cluster whether the images of a
// pod may be run, by an ImageReview, and remembers the answers for a while. It
// is off unless asked for (Kubernetes docs, "ImagePolicyWebhook").
package imagepolicy
