# Certificates for the servers of the tests, made by openssl.

# In FOLDER, each as NAME.pem and NAME.key: an authority (ca), a server's certificate for localhost (server), and a client's, whose
# name is USER (client).
certificates_make() ( # FOLDER USER
  mkdir -p "$1"
  cd "$1" || exit
  ec='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
  # shellcheck disable=SC2086 # Several words.
  openssl req -x509 $ec -days 3650 -subj /CN=authority -keyout ca.key -out ca.pem
  echo 'subjectAltName = DNS:localhost' >names
  for name in server client; do
    subject=/CN=localhost
    if [ $name = client ]; then subject=/CN=$2; fi
    # shellcheck disable=SC2086 # Several words.
    openssl req $ec -subj $subject -keyout $name.key -out $name.csr
    openssl x509 -req -in $name.csr -days 3650 -CA ca.pem -CAkey ca.key -CAcreateserial \
      -extfile names -out $name.pem
  done
)
