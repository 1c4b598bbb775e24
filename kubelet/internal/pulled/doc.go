// Package pulled remembers by whose leave the images of the node were pulled, so
// that a private image which lies on the node is not had by every pod that names it
// (KEP-2535; KubeletConfiguration, imagePullCredentialsVerificationPolicy).
//
// Its records are upstream's, in upstream's files below image_manager in the
// kubelet's directory, so that one kubelet goes by what the other has noted. It
// asks no registry anything: who may not have what is there has to pull it.
package pulled
